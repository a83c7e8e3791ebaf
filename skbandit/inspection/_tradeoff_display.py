"""What a bound costs: the objective against the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.constrained import ConstraintPath, ExtraData, constraint_path
from skbandit.inspection._style import (
    BLUE,
    VERMILLION,
    axes_or_new,
    check_axes,
    line_options,
    read_flags,
    read_table,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class TradeoffDisplay:
    """The objective against what a constraint bounds, over one bound after another.

    Make it with `from_estimator`, or with `from_path` of models that are fitted already.

    Parameters
    ----------
    train : DataFrame
        Columns `bound`, `value`, `objective` and `feasible`, one row a bound: a path's
        `table`.
    test : DataFrame, default=None
        The same models on other rows: columns `bound`, `value`, `objective`,
        `objective_low` and `objective_high`, as `ConstraintPath.measure` gives them.
    label : str, default="bound"
        What is bounded.
    sense : {"<=", ">="} or None, default=None
        How it compares with the bound.
    objective_label : str, default="objective"
        What is optimised.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure around it.
    lines_ : dict of str to matplotlib Line2D
        The curves, "train" and, if there is such data, "test": over the bounds that were met
        in training, in the order of the bounds.
    missed_ : dict of str to matplotlib Line2D
        For each, the closest models to bounds that were not met in training, as crosses.
    interval_ : matplotlib LineCollection or None
        Confidence intervals of the objective on the test rows.

    See Also
    --------
    skbandit.constrained.constraint_path : Fits what is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.inspection import TradeoffDisplay
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.9, pos_label=0)
    >>> display = TradeoffDisplay.from_estimator(
    ...     clf, X[::2], y[::2], bounds=[0.9, 0.95, 0.98], X_test=X[1::2], y_test=y[1::2]
    ... )
    >>> display.ax_.get_ylabel()
    'false_positive_rate()'
    """

    def __init__(
        self,
        train: pd.DataFrame,
        test: pd.DataFrame | None = None,
        *,
        label: str = "bound",
        sense: str | None = None,
        objective_label: str = "objective",
    ) -> None:
        self.train = train
        self.test = test
        self.label = label
        self.sense = sense
        self.objective_label = objective_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        bounds: ArrayLike,
        constraint: int | str | Callable[[float], Any] | None = None,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        attributes_test: Any = None,
        sample_weight_test: ArrayLike | None = None,
        ax: Axes | None = None,
        x: str = "value",
        line_kw: dict[str, Any] | None = None,
    ) -> TradeoffDisplay:
        """Fit a classifier under one bound after another, and draw what each costs.

        Parameters
        ----------
        estimator : ConstrainedRampClassifier, or Pipeline that ends with one
            What to fit; it is cloned.
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        bounds : array-like of shape (n_bounds,)
            As in `constraint_path`.
        constraint : int, str, callable or None, default=None
            Which constraint's bound varies, as in `constraint_path`.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name.
        extra : ExtraData, default=None
            Rows that count only in rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one.
        X_test : like X, default=None
            Rows that the models have not seen, to be measured on as well.
        y_test : array-like, default=None
            Their labels.
        attributes_test : DataFrame or dict of arrays, default=None
            Their attributes.
        sample_weight_test : array-like, default=None
            Their weights.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        x : {"value", "bound"}, default="value"
            What is to the right: see `plot`.
        line_kw : dict, default=None
            Passed to ``Axes.plot``, for both curves.

        Returns
        -------
        TradeoffDisplay
        """
        check_axes(ax, "TradeoffDisplay.from_estimator")
        _read_options(x, line_kw)
        path = constraint_path(
            estimator,
            X,
            y,
            bounds=bounds,
            constraint=constraint,
            sample_weight=sample_weight,
            attributes=attributes,
            extra=extra,
            X_extra=X_extra,
            y_extra=y_extra,
            attributes_extra=attributes_extra,
            sample_weight_extra=sample_weight_extra,
        )
        test = None
        if X_test is not None:
            test = path.measure(
                X_test, y_test, attributes=attributes_test, sample_weight=sample_weight_test
            )
        return cls.from_path(path, test, ax=ax, x=x, line_kw=line_kw)

    @classmethod
    def from_path(
        cls,
        path: ConstraintPath,
        test: pd.DataFrame | None = None,
        *,
        ax: Axes | None = None,
        x: str = "value",
        line_kw: dict[str, Any] | None = None,
    ) -> TradeoffDisplay:
        """Draw a path that is fitted already.

        Parameters
        ----------
        path : ConstraintPath
            What `constraint_path` returned.
        test : DataFrame, default=None
            What `path.measure` gave for other rows.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        x : {"value", "bound"}, default="value"
            What is to the right: see `plot`.
        line_kw : dict, default=None
            Passed to ``Axes.plot``, for both curves.

        Returns
        -------
        TradeoffDisplay
        """
        if not isinstance(path, ConstraintPath):
            raise TypeError(
                f"path must be what constraint_path returned, got {type(path).__name__}."
            )
        display = cls(
            path.table,
            test,
            label=path.label,
            sense=path.sense,
            objective_label=repr(path.objective),
        )
        return display.plot(ax, x=x, line_kw=line_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        x: str = "value",
        line_kw: dict[str, Any] | None = None,
    ) -> TradeoffDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        x : {"value", "bound"}, default="value"
            What is to the right: the value reached, on the same rows as the objective, or
            the bound asked for in training. Where values do not compare with bounds (`sense`
            is None) or were not measured, it is the bound.
        line_kw : dict, default=None
            Passed to ``Axes.plot``, for both curves.

        Returns
        -------
        TradeoffDisplay
            This display.
        """
        line_kw = _read_options(x, line_kw)
        known = isinstance(self.sense, str) and self.sense in ("<=", ">=")
        if not known and self.sense is not None:
            raise ValueError(f"sense={self.sense!r} must be '<=', '>=' or None.")
        curves = self._read_curves()
        axes = axes_or_new(ax, "TradeoffDisplay.plot")
        unknown = any(curve["value"].isna().all() for curve in curves.values())
        x = "bound" if unknown or self.sense is None else x
        met = curves["train"]["feasible"].to_numpy(dtype=bool)
        order = curves["train"]["bound"].to_numpy().argsort(kind="stable")

        self.interval_ = None
        self.lines_: dict[str, Any] = {}
        self.missed_: dict[str, Any] = {}
        for name, curve in curves.items():
            style = STYLES[name] | line_kw
            drawn = curve.iloc[order[met[order]]]
            (self.lines_[name],) = axes.plot(drawn[x], drawn["objective"], **style)
            color = self.lines_[name].get_color()
            if name == "test":
                self.interval_ = axes.vlines(
                    drawn[x], drawn["objective_low"], drawn["objective_high"],
                    color=color, alpha=0.3, zorder=1, label=INTERVAL,
                )  # fmt: skip
            if not met.all():
                far = curve.iloc[order[~met[order]]]
                (self.missed_[name],) = axes.plot(far[x], far["objective"], "x", color=color)
                self.missed_[name].set_label(f"{style['label']}, bound missed in training")
        axes.set_xlabel(self._x_label(x))
        axes.set_ylabel(wrapped(self.objective_label, 36))
        if len(axes.get_legend_handles_labels()[0]) > 1:
            # above the axes, where it hides no interval
            axes.legend(
                loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize="small"
            )
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _read_curves(self) -> dict[str, pd.DataFrame]:
        """The tables to be drawn."""
        figures = ["bound", "value", "objective"]
        curves = {"train": read_table(self.train, "train", [*figures, "feasible"])}
        if self.test is not None:
            figures += ["objective_low", "objective_high"]
            curves["test"] = read_table(self.test, "test", figures)
            if len(self.test) != len(self.train):
                raise ValueError(
                    f"test has {len(self.test)} rows, and train {len(self.train)}: they must be "
                    "of the same models, in the same order."
                )
        if np.isnan(read_flags(self.train, "train", "feasible")).any():
            raise ValueError("train: column 'feasible' must be true or false, some are missing.")
        return curves

    def _x_label(self, x: str) -> str:
        label = wrapped(self.label)
        if self.sense is None:
            return label
        tighter = "← tighter" if self.sense == "<=" else "tighter →"
        return f"{label}\n({'bound, ' if x == 'bound' else ''}{tighter})"


STYLES: dict[str, dict[str, Any]] = {
    "train": {
        "label": "training rows", "color": BLUE, "marker": "o", "markerfacecolor": "white",
        "markersize": 5, "linewidth": 1.2,
    },
    "test": {
        "label": "test rows", "color": VERMILLION, "marker": "s", "markersize": 4.5,
        "linewidth": 1.2,
    },
}  # fmt: skip
INTERVAL = "confidence interval on test rows"


def _read_options(x: Any, line_kw: Any) -> dict[str, Any]:
    """What the user wants of lines; and `x` is something that can be drawn."""
    if not isinstance(x, str) or x not in ("value", "bound"):
        raise ValueError(f"x={x!r} must be 'value' or 'bound'.")
    return line_options(line_kw, "TradeoffDisplay.plot")
