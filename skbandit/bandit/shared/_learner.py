"""The learning half of a shared model: arms and their features, and ordered events."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._arm_keys import new_keys
from skbandit.bandit._events import EncodedLog, Events
from skbandit.bandit._sequential import PosteriorPolicy
from skbandit.bandit._state import N_CHOICES, Rule, read_rule
from skbandit.logs import Codes, ReplayRequest
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import fit_context
from skbandit.utils._validation import check_squares, first_few

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from skbandit.bandit.shared._state import SharedBeliefs, SharedPrior, Units


@dataclass(frozen=True)
class ArmFeatures:
    """Features of arms, as given."""

    columns: tuple[Hashable, ...]
    values: np.ndarray  # (n_arms, n_columns), rows in the order of the arms

    def plus(self, values: np.ndarray) -> ArmFeatures:
        """Features of further arms, too."""
        return ArmFeatures(self.columns, np.concatenate([self.values, values]))

    def take(self, arms: np.ndarray) -> ArmFeatures:
        """Features of the arms of these numbers."""
        return ArmFeatures(self.columns, self.values[arms])


def read_arm_features(
    table: Any, columns: tuple[Hashable, ...] | None = None
) -> tuple[list[Any], ArmFeatures]:
    """Check a table of arm features with one row per arm, labelled by its index.

    Parameters
    ----------
    table : DataFrame of shape (n_arms, n_arm_features)
        Finite numbers.
    columns : tuple of labels, default=None
        Columns that the table must have, in any order; None takes them as they are.

    Returns
    -------
    tuple of list and ArmFeatures
        Labels of the arms, as Python scalars, and their features.
    """
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            "arm_features must be a DataFrame with one row per arm, whose index holds the labels "
            f"of the arms, got {type(table).__name__}."
        )
    if not len(table):
        raise ValueError("arm_features is empty: it has one row for each arm.")
    for axis, names in (("index", table.index), ("columns", table.columns)):
        if not names.is_unique:
            twice = names[names.duplicated()][0]
            raise ValueError(f"arm_features: its {axis} has {twice!r} twice.")
    if table.index.hasnans:
        raise ValueError("arm_features: a label is missing in its index.")
    given = tuple(table.columns)
    if columns is not None and given != columns:
        missing = [name for name in columns if name not in given]
        unknown = [name for name in given if name not in columns]
        if missing or unknown:
            what = f"lacks {first_few(missing)}" if missing else f"has {first_few(unknown)}, too"
            raise ValueError(
                f"arm_features {what}: its columns must be those of the arms described first, "
                f"{first_few(columns)}."
            )
        table = table[list(columns)]
    labels = table.index.tolist()
    return labels, ArmFeatures(tuple(table.columns), _numbers(table, labels))


def _numbers(table: pd.DataFrame, labels: list[Any]) -> np.ndarray:
    """Entries of the table, finite."""
    for name in table.columns:
        kind = table[name].dtype
        if not (pd.api.types.is_numeric_dtype(kind) and kind.kind != "c"):
            raise ValueError(
                f"arm_features: column {name!r} holds {kind}, but features are numbers: encode "
                "categories, for example by pandas.get_dummies."
            )
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"arm_features: {table.columns[column]!r} of arm {labels[row]!r} is "
            f"{values[row, column]}: features must be finite; impute what is missing."
        )
    check_squares(values, "arm_features")
    return np.ascontiguousarray(values)


def new_arms(
    labels: list[Any], described: ArmFeatures, known: ArmFeatures, codes: Codes
) -> tuple[list[Any], np.ndarray]:
    """Labels and features of the arms that are new; a known arm must keep its features."""
    fresh = []
    for row, label in enumerate(labels):
        number = codes.get(label)
        if number is None:
            fresh.append(row)
            continue
        differ = np.flatnonzero(described.values[row] != known.values[number])
        if len(differ):
            column = differ[0]
            raise ValueError(
                f"arm_features: {known.columns[column]!r} of arm {label!r} was "
                f"{known.values[number, column]:g} and is now {described.values[row, column]:g}, "
                "but an arm keeps the features that it was learned with: give the changed arm a "
                "label of its own, or put what changes into the context."
            )
    return [labels[row] for row in fresh], described.values[fresh]


class SharedLearner(PosteriorPolicy):
    """Learns one model of all arms from ordered events; how it is used is up to the policy."""

    arm_features: Any
    covariance: str
    prior_variance: float
    offset_variance: float
    noise_variance: Any  # a number or "auto"
    standardize: bool

    # what the links of `GLMUCBPolicy` leave to the user
    ucb: ClassVar[str] = "U0"
    mean: ClassVar[str] = "M0"
    fit_intercept: ClassVar[bool] = True

    _beliefs: SharedBeliefs
    _known: ArmFeatures | None  # None before any arm is known
    _arm_units: Units | None

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy, with its table of features as arrays: skops refuses pandas types."""
        state = super().__getstate__()
        table = state.get("arm_features")
        if isinstance(table, pd.DataFrame):
            state["arm_features"] = {
                "index": table.index.tolist(),
                "columns": table.columns.tolist(),
                "data": [table.iloc[:, k].to_numpy() for k in range(table.shape[1])],
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state."""
        table = state.get("arm_features")
        if isinstance(table, dict):
            index, columns = (
                pd.Index(table[axis], tupleize_cols=False) for axis in ("index", "columns")
            )
            frame = pd.DataFrame(dict(enumerate(table["data"])), index=index)
            state = {**state, "arm_features": frame.set_axis(columns, axis=1)}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def arm_features_(self) -> pd.DataFrame:
        """Features of `arms_`, as they were given."""
        check_is_fitted(self)
        known = ArmFeatures((), np.empty((len(self._codes), 0)))
        known = known if self._known is None else self._known
        labels = pd.Index(self._labels, dtype=self._labels.dtype)
        return pd.DataFrame(known.values.copy(), index=labels, columns=list(known.columns))

    @property
    def coef_(self) -> np.ndarray:
        """Posterior mean of B for features as given, of shape (dx, dz), constants last."""
        from skbandit.bandit.shared._state import as_given

        check_is_fitted(self)
        beliefs = self._beliefs
        of_arms = None if self._arm_units is None else as_given(self._arm_units)
        left = as_given(beliefs.units).T @ beliefs.mean
        return left if of_arms is None else left @ of_arms

    @property
    def offset_(self) -> np.ndarray:
        """Posterior means of the arms' offsets, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._beliefs.offset_mean.copy()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        arm_features: pd.DataFrame | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the events of a log in order, discarding earlier learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame, dict or structured array with columns action and reward, or array of actions
            Arms played and rewards observed; columns `available` and `timestamp` are checked.
        reward : array-like of shape (n_events,), default=None
            Rewards, if `y` is an array of actions. Without them each action counts as reward 1,
            with a warning.
        available : array-like, default=None
            Arms available to each event, as in `select`, if not a column of `y`. Each action
            must be among them.
        arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
            Features of further arms, beside those of the parameter `arm_features`.
        sample_weight : array-like of shape (n_events,), default=None
            Number of events that each one counts for: its likelihood is raised to this power.
            Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning, atomic_fit(self) as draft:
            draft._begin(X)
            draft._describe(arm_features)
            draft._learn(X, y, reward, available, sample_weight)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        arm_features: pd.DataFrame | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further events in order, with the same result as one `fit` on all of them.

        An error or an interrupt leaves the policy unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            As in `fit`.
        reward : array-like of shape (n_events,), default=None
            As in `fit`.
        available : array-like, default=None
            As in `fit`.
        arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
            Features of new arms; it may hold known ones, too.
        sample_weight : array-like of shape (n_events,), default=None
            As in `fit`.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning, atomic_fit(self) as draft:
            if not draft.__sklearn_is_fitted__():
                draft._begin(X)
            draft._describe(arm_features)
            draft._learn(X, y, reward, available, sample_weight)
        return self

    def describe_arms(self, arm_features: pd.DataFrame) -> Self:
        """Make arms known by their features.

        Parameters
        ----------
        arm_features : DataFrame of shape (n_arms, n_arm_features)
            One row per arm, with the arms' labels as index; it may hold known arms, too.

        Returns
        -------
        self
            Policy that knows these arms. One that has seen no context yet keeps them as its
            parameter `arm_features`.
        """
        with self._guard.learning, atomic_fit(self) as draft:
            if draft.__sklearn_is_fitted__():
                draft._describe(arm_features)
            else:
                labels, described = read_arm_features(arm_features)
                if draft.arm_features is not None:
                    named, known = read_arm_features(draft.arm_features)
                    labels, described = read_arm_features(arm_features, known.columns)
                    codes: Codes = {label: k for k, label in enumerate(named)}
                    fresh, values = new_arms(labels, described, known, codes)
                    labels, described = [*named, *fresh], known.plus(values)
                draft.arm_features = pd.DataFrame(
                    described.values, index=pd.Index(labels), columns=list(described.columns)
                )
        return self

    def _knows_arms(self) -> bool:
        return self.arm_features is not None

    def _start(self) -> None:
        self._known = self._arm_units = None
        self._start_beliefs(0)
        self._describe(self.arm_features)

    def _keep_arms(self, kept: np.ndarray) -> None:
        from skbandit.bandit.shared._state import only_arms

        self._beliefs = only_arms(self._beliefs, kept)
        self._known = None if self._known is None else self._known.take(kept)

    def _start_beliefs(self, dz: int) -> None:
        """Start from the prior, with this number of arm features."""
        from skbandit.bandit.shared._state import fixed_units, prior_beliefs, running_units

        units = (running_units if self.standardize else fixed_units)(self.n_features_in_)
        self._beliefs = prior_beliefs(units, dz + 1, self.covariance == "full", self._prior())

    def _describe(self, table: Any) -> None:
        """Add the arms of a table, if any, that are not known yet."""
        from skbandit.bandit.shared._state import fixed_units, running_units

        if table is None:
            return
        if self._known is None and self._codes:
            raise ValueError(
                f"the arms {first_few(self._codes)} were learned without features: a policy whose "
                "arms have features must know them from the start; fit it anew."
            )
        columns = None if self._known is None else self._known.columns
        labels, described = read_arm_features(table, columns)
        known = ArmFeatures(described.columns, described.values[:0])
        known = known if self._known is None else self._known
        fresh, values = new_arms(labels, described, known, self._codes)
        if self._known is None:
            dz = values.shape[1]
            self._arm_units = running_units(dz, 2) if self.standardize else fixed_units(dz)
            self._start_beliefs(dz)
        if fresh:
            codes = self._codes | {k: len(self._codes) + i for i, k in enumerate(fresh)}
            self._check_new_arms(codes)
            self._known = known.plus(values)
            self._renew_arm_units(values)
            self._beliefs = self._with_arms(fresh, values)
            self._know(codes)

    def _renew_arm_units(self, values: np.ndarray) -> None:
        """Standardise the features of arms anew, if there are twice as many arms."""
        from skbandit.bandit._units import count
        from skbandit.bandit.shared._state import (
            Units,
            in_new_units,
            prior_variances,
            renew_if_due,
            standardized,
        )

        assert self._arm_units is not None and self._known is not None
        units = Units(*(array.copy() for array in self._arm_units))
        for row in range(len(values)):
            count(values, row, 1.0, units.mean, units.squares, units.seen)
        self._arm_units = units
        factor, shift = np.empty(values.shape[1]), np.empty(values.shape[1])
        if not renew_if_due(units, factor, shift):
            return
        beliefs = self._beliefs
        dx, dz = beliefs.mean.shape
        prior_variance = prior_variances(dx, dz, self._prior())
        mean, cov_factor = in_new_units(
            factor, shift, beliefs.mean, beliefs.cov_factor, prior_variance
        )
        Z = standardized(self._known.values[: len(beliefs.Z)], units)
        self._beliefs = beliefs._replace(mean=mean, cov_factor=cov_factor, Z=Z)

    def _with_arms(self, labels: list[Any], values: np.ndarray) -> SharedBeliefs:
        """Beliefs about new arms, too."""
        from skbandit.bandit.shared._state import standardized, with_arms

        Z = np.ones((len(labels), 1))
        if self._arm_units is not None:
            Z = standardized(values, self._arm_units)
        keys = new_keys(labels, self._beliefs.rng_key.tolist())
        return with_arms(self._beliefs, Z, keys, self._prior())

    def _beliefs_about(self, codes: Codes) -> SharedBeliefs:
        """Beliefs about the known arms and new ones, which need no features."""
        if len(codes) == len(self._codes):
            return self._beliefs
        new = list(codes)[len(self._codes) :]
        self._check_described(new)
        return self._with_arms(new, np.empty((len(new), 0)))

    def _check_described(self, labels: list[Any]) -> None:
        """Require features of arms, if any arm has them."""
        if self._known is not None:
            new = [label for label in labels if label not in self._codes]
            if new:
                raise ValueError(
                    f"arm {new[0]!r} has no features: describe it by a row of arm_features, as "
                    f"the {len(self._codes)} arms known are."
                )

    def _read_events(self, *log: Any) -> Events:
        events = super()._read_events(*log)
        self._check_described(events.arms.tolist())
        return events

    def _absorb(self, events: Events) -> None:
        from skbandit.bandit._passes import learn_rows
        from skbandit.bandit.shared._state import own_copy

        action = self._number(events.arms)
        self._beliefs = own_copy(self._beliefs)
        self._alphas(len(events))  # raise errors now, not in the next choice
        learn_rows(
            events.X, action, events.reward, events.weight, self._beliefs, self._prior(),
            read_rule(self),
        )  # fmt: skip

    def _prior(self) -> SharedPrior:
        from skbandit.bandit.shared._state import WIDE, SharedPrior

        estimated = self.link == "linear" and self.noise_variance == "auto"
        return SharedPrior(
            variance=float(self.prior_variance),
            constant_variance=WIDE if estimated else 1.0,
            offset_variance=float(self.offset_variance),
            noise_variance=1.0 if self.noise_variance == "auto" else float(self.noise_variance),
            estimates_noise=estimated,
            forgetting=float(self.forgetting) if self.forgetting < 1 else None,
        )

    def _alpha(self) -> float:
        from skbandit.bandit.exploration import alpha_scale
        from skbandit.bandit.shared._bilinear import noise_scale

        scale = alpha_scale(noise_scale(self._beliefs.noise), read_rule(self))
        return super()._alpha() * float(scale)

    def _ready(self, X: Any, available: Any, arm_features: Any = None) -> tuple[Self, Any]:
        """As of other policies, with arms that become known."""
        if arm_features is not None:
            with self._guard.learning, atomic_fit(self) as draft:
                if not draft.__sklearn_is_fitted__():
                    draft._validate_params()
                    draft._begin(X)
                draft._describe(arm_features)
        return super()._ready(X, available)

    def _rows(self, X: Any) -> np.ndarray:
        X = super()._rows(X)
        return X.toarray() if issparse(X) else X

    def _replay(
        self, request: ReplayRequest, log: EncodedLog, codes: Codes, rule: Rule, n_choices: int
    ) -> tuple[np.ndarray, int]:
        from skbandit.bandit._passes import replay_rows
        from skbandit.bandit.shared._state import N_RANKED, only_arms, own_copy

        n_known, labels = len(self._codes), list(codes)
        beliefs = own_copy(self._beliefs_about(codes))
        # new arms rank last until they are learned: arms learned in the meantime precede them
        beliefs.tie_order[n_known:] += len(codes)
        beliefs.counters[N_RANKED], beliefs.counters[N_CHOICES] = n_known, n_choices
        alphas = self._alphas(len(request.rows))
        accepted, n_seen = replay_rows(request, log, alphas, beliefs, self._prior(), rule)
        # new arms in the order in which they were learned
        rank = np.argsort(beliefs.tie_order[n_known:], kind="stable") + n_known
        kept = np.concatenate([np.arange(n_known), rank[beliefs.n_updates[rank] > 0]])
        self._beliefs = only_arms(beliefs, kept)
        self._know({labels[arm]: k for k, arm in enumerate(kept.tolist())})
        return accepted, n_seen
