"""Display of arm shares over events or time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit import logs
from skbandit.evaluation import ReplayResult, replay
from skbandit.inspection import _style
from skbandit.inspection._style import GRAY, PALETTE
from skbandit.utils._validation import as_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Maximum number of parts, and minimum number of events per part.
_MAX_PARTS, _MIN_EVENTS = 50, 20

# Hatch patterns, if there are more arms than colors.
_HATCHES = ("", "////", "....")


class ArmSharesDisplay:
    """Shares of the arms among the choices of a log or a policy, over events or time.

    Events are divided into parts of equal size; the shares of each part are stacked. Create it
    with `from_estimator`, `from_result` (of a replay) or `from_log`.

    Parameters
    ----------
    shares : DataFrame
        One row per part, indexed by an IntervalIndex (events, seconds or datetimes); one column
        per arm. Rows sum to 1.
    label : str, default="event"
        Unit of the index.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the plot.
    areas_ : dict of label to matplotlib PolyCollection
        The areas of single arms, from the bottom up.
    others_ : matplotlib PolyCollection or None
        The gray area of all other arms together, on top.

    See Also
    --------
    ReplayDisplay : Mean reward of the choices.

    Examples
    --------
    A log of random choices, and the choices of a policy that learns from it:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import replay
    >>> from skbandit.inspection import ArmSharesDisplay
    >>> log = make_bandit_log(20_000, n_arms=3, base_rate=0.1, random_state=0)
    >>> logged = ArmSharesDisplay.from_log(log.y)
    >>> print(logged.shares[[0, 1, 2]].mean().round(2).tolist())
    [0.33, 0.33, 0.34]
    >>> result = replay(GLMUCBPolicy(), log.X, log.y, subsample=0.5, n_repeats=5, random_state=0)
    >>> display = ArmSharesDisplay.from_result(result)
    >>> display.ax_.get_xlabel()
    'event played, T'
    """

    def __init__(self, shares: pd.DataFrame, *, label: str = "event") -> None:
        self.shares = shares
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        policy: Any,
        X: Any,
        y: Any,
        *,
        arms: Sequence[Hashable] | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> ArmSharesDisplay:
        """Replay a policy on a log and draw the shares of the arms it played.

        Parameters
        ----------
        policy : object with select or predict, Pipeline that ends in one, or fitted search
            The policy, as in `replay`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
            Contexts, in order of time.
        y : DataFrame or structured array with columns action and reward, or array of actions
            The log.
        arms : sequence of labels, default=None
            Arms with an area of their own; see `plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        **options : dict
            Options of `replay`, of which ``n_repeats=10`` and ``subsample=0.5`` are defaults here.

        Returns
        -------
        ArmSharesDisplay
        """
        _style.check_axes(ax, "ArmSharesDisplay.from_estimator")
        result = replay(policy, X, y, **{"n_repeats": 10, "subsample": 0.5, **options})
        return cls.from_result(result, arms=arms, ax=ax)

    @classmethod
    def from_result(
        cls,
        result: ReplayResult,
        *,
        arms: Sequence[Hashable] | None = None,
        ax: Axes | None = None,
    ) -> ArmSharesDisplay:
        """Draw the shares of the arms that a policy played in a replay.

        Parameters
        ----------
        result : ReplayResult
            The result of `replay`, with all runs pooled; or its `deployment`.
        arms : sequence of labels, default=None
            Arms with an area of their own; see `plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        ArmSharesDisplay
        """
        if not isinstance(result, ReplayResult):
            raise TypeError(
                f"result must be a ReplayResult, as returned by replay(), got {result!r}."
            )
        actions = [run.action[run.take(result.bucket)] for run in result.trajectories]
        action = np.concatenate(actions)
        if not len(action):
            raise ValueError("the replay kept no event, so there is no arm to draw.")
        step = np.concatenate([np.arange(1, len(run_actions) + 1) for run_actions in actions])
        order = step.argsort(kind="stable")
        shares = _count_shares(pd.Index(step[order]), action[order], result.metadata.arms)
        of = "" if result.bucket == "learning" else f" of the {result.bucket} bucket"
        return cls(shares, label=f"event played{of}, T").plot(ax, arms=arms)

    @classmethod
    def from_log(
        cls,
        y: Any,
        *,
        timestamp: Any = None,
        arms: Sequence[Hashable] | None = None,
        ax: Axes | None = None,
    ) -> ArmSharesDisplay:
        """Draw the shares of the arms in a log, or among a policy's choices for its events.

        Parameters
        ----------
        y : DataFrame or structured array with column action, or array of actions
            The log, or choices such as ``policy.predict(X)``. A column timestamp is read if
            present.
        timestamp : array-like of shape (n_events,), default=None
            Datetimes or seconds, if not a column of `y`. Without them, the x-axis counts events.
        arms : sequence of labels, default=None
            Arms with an area of their own; see `plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        ArmSharesDisplay
        """
        names = logs.column_names(y)
        if names is not None and "action" not in names:
            raise ValueError(f"y has no column 'action'; its columns are {names}.")
        codes: logs.Codes = {}
        action = logs.code_labels(logs.as_actions(y) if names is None else y["action"], codes)
        if not len(action):
            raise ValueError("y has no events.")
        if timestamp is None and names is not None and "timestamp" in names:
            timestamp = y["timestamp"]
        at, label = pd.Index(np.arange(1, len(action) + 1)), "event"
        if timestamp is not None:
            timestamp = logs.times_as_series(timestamp)
            order = logs.read_times(timestamp, len(action)).argsort(kind="stable")
            times, action = pd.Index(timestamp)[order], action[order]
            if times[0] != times[-1]:
                at = times
                label = "time" if isinstance(at, pd.DatetimeIndex) else "time in seconds"
        shares = _count_shares(at, action, logs.label_array(codes))
        return cls(shares, label=label).plot(ax, arms=arms)

    def plot(
        self, ax: Axes | None = None, *, arms: Sequence[Hashable] | None = None
    ) -> ArmSharesDisplay:
        """Draw the shares.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        arms : sequence of labels, default=None
            Arms with an area of their own, from the bottom up; all others share a gray area. Pass
            it to give several displays the same colors. None is the seven most common arms.

        Returns
        -------
        ArmSharesDisplay
            This display.
        """
        labels: list[Any] = self.shares.columns.tolist()
        shares: np.ndarray = self.shares.to_numpy(dtype=float)
        if arms is None:
            most = (-shares.mean(axis=0)).argsort(kind="stable")[: len(PALETTE)]
            arms = [labels[k] for k in most]
        arms = list(dict.fromkeys(as_labels(arms, "arms")))
        if strange := [arm for arm in arms if arm not in labels]:
            raise ValueError(f"arms contains {strange[0]!r}, which is not one of {labels}.")
        shares = shares[:, [labels.index(arm) for arm in arms]]
        n_others = len(labels) - len(arms)
        axes = _style.get_axes(ax, "ArmSharesDisplay.plot", (7.2, 4.2))

        parts: Any = self.shares.index  # an IntervalIndex
        edges = parts.left.append(parts.right[-1:])
        if isinstance(edges, pd.DatetimeIndex):
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator(tz=edges.tz, maxticks=8)  # so that labels do not overlap
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=edges.tz))
            edges = edges.to_pydatetime()
        shares = np.vstack([shares, shares[-1:]])  # each step ends at the start of the next
        ones = np.ones(len(shares))
        heights = np.vstack([0 * ones, shares.T.cumsum(axis=0), ones])
        style = {"step": "post", "edgecolor": "white", "linewidth": 0.5}
        self.areas_ = {
            arm: axes.fill_between(
                edges, heights[k], heights[k + 1], label=_style.wrap(arm, 24),
                facecolor=PALETTE[k % len(PALETTE)],
                hatch=_HATCHES[k // len(PALETTE) % len(_HATCHES)], **style,
            )
            for k, arm in enumerate(arms)
        }  # fmt: skip
        self.others_ = None
        if n_others:
            label = f"{n_others} other{'s' if n_others > 1 else ''}"
            self.others_ = axes.fill_between(
                edges, heights[-2], heights[-1], facecolor=GRAY, label=label, **style
            )
        axes.set(xlabel=self.label, ylabel="share of the choices", ylim=(0, 1), xmargin=0)
        axes.legend(
            title="arm", reverse=True, loc="center left", bbox_to_anchor=(1, 0.5), **_style.LEGEND
        )
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _count_shares(at: pd.Index, action: np.ndarray, arms: np.ndarray) -> pd.DataFrame:
    """Shares of the arms among ordered events, in parts of about equal size.

    `at` is the ascending position of each event, `action` the index of its arm. Events of one
    position are in one part, and those of the last one in that before it.
    """
    n_events, n_arms = len(action), len(arms)
    n_parts = min(_MAX_PARTS, max(1, n_events // _MIN_EVENTS))
    position = pd.factorize(at)[0]
    first = np.searchsorted(position, position[np.arange(n_parts) * n_events // n_parts])
    first = np.unique(first[(position[first] < position[-1]) | (first == 0)])
    start, n_parts = np.append(first, n_events), len(first)
    part = np.repeat(np.arange(n_parts), np.diff(start))
    counts = np.bincount(part * n_arms + action, minlength=n_parts * n_arms)
    counts = counts.reshape(n_parts, n_arms)
    edges = at[np.append(start[:-1], n_events - 1)]
    return pd.DataFrame(
        counts / counts.sum(axis=1, keepdims=True),
        index=pd.IntervalIndex.from_arrays(edges[:-1], edges[1:], closed="left"),
        columns=pd.Index(arms, name="arm", tupleize_cols=False),
    )
