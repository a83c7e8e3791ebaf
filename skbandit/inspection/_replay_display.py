"""Display of replays: mean reward against experience."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.evaluation import ReplayResult, replay
from skbandit.inspection import _style
from skbandit.inspection._style import PALETTE
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Number of horizons per curve, and the first horizon as a share of the last: means of fewer events
# are mostly noise and would stretch the y-axis.
_POINTS, _FIRST = 60, 0.02

_MARKERS = "osD^vP"
_LOG_LABEL = "the log itself"
_CURVE_COLUMNS = ["policy", "bucket", "horizon", "mean_reward", "low", "high", "logged_mean"]


class ReplayDisplay:
    """Mean reward of policies against their experience.

    A point of a curve is computed by `ReplayResult.at`: the mean reward over the policy's first T
    events, averaged over runs, with its confidence interval. Curves of several policies are thus
    compared at equal T. Create it with `from_estimator`, or with `from_result` of existing
    replays.

    Parameters
    ----------
    curves : DataFrame
        One row per point: `policy` (a name), `bucket` ("learning" or "deployment"), `horizon`
        (T), `mean_reward`, its interval's `low` and `high` (nan if unknown), and `logged_mean`,
        the mean reward of the log.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the plot.
    lines_ : dict of (str, str) to matplotlib Line2D
        The curve of each policy and bucket; dashed for the deployment bucket.
    intervals_ : dict of (str, str) to matplotlib PolyCollection
        Confidence intervals; none for a policy that learned in a single run, as the spread
        between runs is unknown.
    logged_ : list of matplotlib Line2D
        The mean reward of each log, dotted.

    See Also
    --------
    skbandit.evaluation.replay : Computes the results.
    ArmSharesDisplay : Shares of the arms that a policy played.

    Examples
    --------
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import replay
    >>> from skbandit.inspection import ReplayDisplay
    >>> log = make_bandit_log(20_000, n_arms=5, base_rate=0.1, random_state=0)
    >>> policies = {"logistic": GLMUCBPolicy(), "linear": GLMUCBPolicy("linear")}
    >>> results = {
    ...     name: replay(policy, log.X, log.y, subsample=0.5, n_repeats=5, random_state=0)
    ...     for name, policy in policies.items()
    ... }
    >>> display = ReplayDisplay.from_result(results)
    >>> display.ax_.get_xlabel()
    'events played, T'
    """

    def __init__(self, curves: pd.DataFrame) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls,
        policy: Any,
        X: Any,
        y: Any,
        *,
        confidence_level: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> ReplayDisplay:
        """Replay a policy on a log and draw its mean reward.

        Parameters
        ----------
        policy : object with select or predict, Pipeline that ends in one, or fitted search
            The policy, as in `replay`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
            Contexts, in order of time.
        y : DataFrame or structured array with columns action and reward, or array of actions
            The log.
        confidence_level : float, default=0.95
            Nominal coverage of the intervals.
        name : str, default=None
            Name of the policy; None is the name of its class.
        ax : matplotlib Axes, default=None
            Axes to draw on, in addition to their contents; None creates a figure.
        **options : dict
            Options of `replay`, of which ``n_repeats=10`` and ``subsample=0.5`` are defaults here.

        Returns
        -------
        ReplayDisplay
        """
        _style.check_axes(ax, "ReplayDisplay.from_estimator")
        check_level(confidence_level)
        result = replay(policy, X, y, **{"n_repeats": 10, "subsample": 0.5, **options})
        last = behind_transformers(policy, None)[0]
        results = {type(last).__name__ if name is None else str(name): result}
        return cls.from_result(results, confidence_level=confidence_level, ax=ax)

    @classmethod
    def from_result(
        cls,
        result: ReplayResult | Mapping[str, ReplayResult],
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> ReplayDisplay:
        """Draw one replay, or several by name.

        Parameters
        ----------
        result : ReplayResult or dict of str to ReplayResult
            Results of `replay`. A deployment bucket is drawn with its learning bucket.
        confidence_level : float, default=0.95
            Nominal coverage of the intervals.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        ReplayDisplay
        """
        results = result if isinstance(result, Mapping) else {"policy": result}
        curves = [_curve(str(name), result, confidence_level) for name, result in results.items()]
        if not curves:
            raise ValueError("result is an empty dict: pass a ReplayResult, or several by name.")
        return cls(pd.concat(curves, ignore_index=True)).plot(ax)

    def plot(
        self, ax: Axes | None = None, *, line_kw: dict[str, Any] | None = None
    ) -> ReplayDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on, in addition to their contents; None creates a figure.
        line_kw : dict, default=None
            Passed to ``Axes.plot`` for all curves.

        Returns
        -------
        ReplayDisplay
            This display.
        """
        curves, axes = self.curves, _style.get_axes(ax, "ReplayDisplay.plot")
        line_kw = _style.full_names(line_kw)
        self.lines_: dict[tuple[str, str], Any] = {}
        self.intervals_: dict[tuple[str, str], Any] = {}
        taken = {line.get_color() for line in axes.get_lines()}
        pairs = list(zip(PALETTE[:-1], _MARKERS, strict=True))  # yellow lines are hard to see
        styles = sorted(pairs, key=lambda pair: pair[0] in taken)
        policies = curves.groupby("policy", sort=False)
        for (name, policy), (color, marker) in zip(policies, cycle(styles), strict=False):
            for bucket, curve in policy.groupby("bucket", sort=False):
                key = str(name), str(bucket)
                style = {
                    **_style.LINE, "color": color, "marker": marker,
                    "label": _style.wrap(name, 36), "markevery": max(1, len(curve) // 6),
                }  # fmt: skip
                if bucket == "deployment":
                    label = _style.wrap(f"{name}, deployment", 36)
                    style |= {"linestyle": "--", "markerfacecolor": "white", "label": label}
                style |= line_kw
                (line,) = axes.plot(curve["horizon"], curve["mean_reward"], **style)
                self.lines_[key] = line
                if curve["low"].notna().any():
                    self.intervals_[key] = axes.fill_between(
                        curve["horizon"], curve["low"], curve["high"],
                        color=line.get_color(), alpha=0.15, linewidth=0, zorder=1,
                    )  # fmt: skip
        self.logged_ = [
            axes.axhline(level, color="0.4", linestyle=":", linewidth=1.2, label=_LOG_LABEL)
            for level in curves["logged_mean"].unique()
        ]
        axes.set(xlabel="events played, T", ylabel="mean reward so far")
        # one entry per label, the log last
        handles, labels = axes.get_legend_handles_labels()
        entries = dict(
            sorted(zip(labels, handles, strict=True), key=lambda entry: entry[0] == _LOG_LABEL)
        )
        axes.legend(entries.values(), entries.keys(), **_style.LEGEND)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _curve(name: str, result: ReplayResult, confidence_level: float) -> pd.DataFrame:
    """Mean rewards of a result at increasing horizons, for both buckets."""
    if not isinstance(result, ReplayResult):
        raise TypeError(
            "result must be a ReplayResult, as returned by replay(), or a dict of them, got "
            f"{result!r}."
        )
    longest = min(len(run.take("learning")) for run in result.trajectories)
    if not longest:
        raise ValueError(f"{name!r} has a run that kept no event, so there is no curve to draw.")
    first = max(1, round(_FIRST * longest))
    horizons = np.unique(np.linspace(first, longest, _POINTS).round().astype(int))
    has_interval = len(result.trajectories) > 1 or not result.metadata.learns
    rows = []
    for horizon in horizons.tolist():
        then = result.at(horizon)
        buckets = (then,) if then.bucket == "deployment" else (then, then.deployment)
        for part in filter(None, buckets):
            low, high = part.interval(confidence_level) if has_interval else (np.nan, np.nan)
            rows.append((name, part.bucket, horizon, part.mean_reward, low, high, part.logged_mean))
    return pd.DataFrame(rows, columns=_CURVE_COLUMNS)
