"""Display of a trade-off: the objective against a constraint's bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.constrained import ConstraintPath, constraint_path
from skbandit.inspection import _style
from skbandit.inspection._style import BLUE, GREEN, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

# Of the lines, in the order of the legend.
STYLES: dict[str, dict[str, Any]] = {
    "train": {"label": "training rows", "color": BLUE, "marker": "o", "markerfacecolor": "white"},
    "cross_fitted": {"label": "out of fold", "color": GREEN, "marker": "^"},
    "test": {"label": "test rows", "color": VERMILLION, "marker": "s"},
}


class TradeoffDisplay:
    """The constrained value and the objective of models with a sequence of bounds.

    The left axes show the value against the bound on training rows, out of fold and on new rows,
    with the bound itself as the diagonal. The right axes show the objective.

    Create it with `from_path` of a fitted `ConstraintPath`, or with `from_estimator`, which fits
    one.

    Parameters
    ----------
    train : DataFrame
        Columns `bound`, `value`, `objective` and `feasible`, one row per bound: the `table` of a
        path. An optional column `cross_fitted` has the value out of fold.
    test : DataFrame, default=None
        The same models on other rows: columns `bound`, `value`, `objective`,
        `objective_low` and `objective_high`, as returned by `ConstraintPath.measure`.
    label : str, default="bound"
        Name of the constrained value.
    sense : {"<=", ">="} or None, default=None
        Comparison of the value with its bound.
    objective_label : str, default="objective"
        Name of the objective.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the objective.
    value_ax_ : matplotlib Axes or None
        The axes of the values; None if the objective alone was drawn.
    values_ : dict of str to matplotlib Line2D
        The values "train", "cross_fitted" and "test" against the bound, in its order.
    bound_ : matplotlib Line2D or None
        The bound itself, as a diagonal.
    figure_ : matplotlib Figure
        The figure of the plot.
    lines_ : dict of str to matplotlib Line2D
        The curves "train" and, if there are test rows, "test", over the bounds that were met in
        training, in the order of the bounds.
    missed_ : dict of str to matplotlib Line2D
        Per curve, the closest models to the bounds that were missed in training, as crosses.
    interval_ : matplotlib LineCollection or None
        Confidence intervals of the objective on the test rows.

    See Also
    --------
    skbandit.constrained.constraint_path : Fits the path.

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
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        attributes_test: Any = None,
        sample_weight_test: ArrayLike | None = None,
        ax: Axes | None = None,
        x: str = "bound",
        line_kw: dict[str, Any] | None = None,
        **rows: Any,
    ) -> TradeoffDisplay:
        """Fit a classifier for each bound, and draw the trade-off.

        A shorthand for ``from_path(constraint_path(...), path.measure(...))``.

        Parameters
        ----------
        estimator : classifier with constraints, or Pipeline that ends with one
            The classifier to fit; it is cloned.
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        bounds : array-like of shape (n_bounds,)
            As in `constraint_path`.
        constraint : int, str, callable or None, default=None
            Which constraint's bound varies, as in `constraint_path`.
        X_test : like X, default=None
            Rows held out from training, drawn as a second curve.
        y_test : array-like, default=None
            Their labels.
        attributes_test : DataFrame or dict of arrays, default=None
            Their attributes.
        sample_weight_test : array-like, default=None
            Their weights.
        ax : matplotlib Axes, default=None
            Axes for the objective alone; None creates a figure that also shows the values.
        x : {"bound", "value"}, default="bound"
            The x-axis of the objective; see `plot`.
        line_kw : dict, default=None
            Passed to ``Axes.plot`` for both curves.
        **rows : dict
            `sample_weight`, `attributes`, `X_extra`, ... of the training rows, as in
            `constraint_path`.

        Returns
        -------
        TradeoffDisplay
        """
        _style.check_axes(ax, "TradeoffDisplay.from_estimator")
        path = constraint_path(estimator, X, y, bounds=bounds, constraint=constraint, **rows)
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
        x: str = "bound",
        line_kw: dict[str, Any] | None = None,
    ) -> TradeoffDisplay:
        """Draw a fitted path.

        Parameters
        ----------
        path : ConstraintPath
            The result of `constraint_path`.
        test : DataFrame, default=None
            The result of `path.measure` on other rows.
        ax : matplotlib Axes, default=None
            Axes for the objective alone; None creates a figure that also shows the values.
        x : {"bound", "value"}, default="bound"
            The x-axis of the objective; see `plot`.
        line_kw : dict, default=None
            Passed to ``Axes.plot`` for both curves.

        Returns
        -------
        TradeoffDisplay
        """
        if not isinstance(path, ConstraintPath):
            raise TypeError(
                f"path must be a ConstraintPath, as returned by constraint_path, got "
                f"{type(path).__name__}."
            )
        labels = {"label": path.label, "objective_label": repr(path.objective)}
        display = cls(path.table, test, sense=path.sense, **labels)
        return display.plot(ax, x=x, line_kw=line_kw)

    def plot(
        self, ax: Axes | None = None, *, x: str = "bound", line_kw: dict[str, Any] | None = None
    ) -> TradeoffDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes for the objective alone; None creates a figure that also shows the values.
        x : {"bound", "value"}, default="bound"
            The x-axis of the objective: the bound, or the value on the same rows as the
            objective. If values are not comparable with bounds (`sense` is None) or
            were not measured, it is the bound.
        line_kw : dict, default=None
            Passed to ``Axes.plot`` for both curves.

        Returns
        -------
        TradeoffDisplay
            This display.
        """
        if x not in ("value", "bound"):
            raise ValueError(f"x={x!r} must be 'bound' or 'value'.")
        _style.check_axes(ax, "TradeoffDisplay.plot")
        line_kw = _style.full_names(line_kw)
        train = self.train
        curves = {"train": train} if self.test is None else {"train": train, "test": self.test}
        if not np.array_equal(curves.get("test", train)["bound"], train["bound"]):
            raise ValueError(
                "test has other bounds than train: pass tables of the same models, in the same "
                "order."
            )
        order = train["bound"].argsort(kind="stable").to_numpy()
        is_met = train["feasible"].to_numpy(dtype=bool)[order]
        curves = {name: curve.iloc[order] for name, curve in curves.items()}
        comparable = self.sense is not None and not any(
            curve["value"].isna().all() for curve in curves.values()
        )
        x = x if comparable else "bound"
        self.value_ax_, self.bound_ = None, None
        self.values_: dict[str, Any] = {}
        if ax is None and comparable:
            axes = self._plot_values(curves, line_kw)
        else:
            axes = _style.get_axes(ax, "TradeoffDisplay.plot")

        self.interval_ = None
        self.lines_: dict[str, Any] = {}
        self.missed_: dict[str, Any] = {}
        for name, curve in curves.items():
            style = _style.LINE | STYLES[name] | line_kw
            met, missed = curve[is_met], curve[~is_met]
            (self.lines_[name],) = axes.plot(met[x], met["objective"], **style)
            color = self.lines_[name].get_color()
            if name == "test":
                self.interval_ = axes.vlines(
                    met[x], met["objective_low"], met["objective_high"], color=color, alpha=0.35,
                    linewidth=5, zorder=1, label="confidence interval on test rows",
                )  # fmt: skip
            if len(missed):
                (self.missed_[name],) = axes.plot(missed[x], missed["objective"], "x", color=color)
                self.missed_[name].set_label(f"{style['label']}, bound missed in training")
        axes.set(xlabel=self._x_label(x), ylabel=_style.wrap(self.objective_label, 36))
        if len(axes.get_legend_handles_labels()[0]) > 1:
            axes.legend(**_style.ABOVE)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _plot_values(self, curves: dict[str, pd.DataFrame], line_kw: dict[str, Any]) -> Axes:
        """Draw values against bounds on the left of a new figure; return the axes on the right."""
        pyplot = _style.check_axes(None, "TradeoffDisplay.plot")
        _, (axes, right) = pyplot.subplots(ncols=2, figsize=(10.0, 4.4), layout="constrained")
        bound = curves["train"]["bound"]
        (self.bound_,) = axes.plot(bound, bound, color="black", linewidth=1, label="the bound")
        for name, style in STYLES.items():
            table, column = ("train", name) if name == "cross_fitted" else (name, "value")
            if column in curves.get(table, ()):
                style = _style.LINE | style | line_kw
                (self.values_[name],) = axes.plot(bound, curves[table][column], **style)
        axes.set(xlabel=self._x_label("bound"), ylabel=_style.wrap(self.label, 36))
        axes.legend(**_style.ABOVE)
        self.value_ax_ = axes
        return right

    def _x_label(self, x: str) -> str:
        """Return the name of the constrained value, with the direction of tighter bounds."""
        label = _style.wrap(self.label)
        if self.sense is None:
            return label
        tighter = "← tighter" if self.sense == "<=" else "tighter →"
        return f"{label}\n({'bound, ' if x == 'bound' else ''}{tighter})"
