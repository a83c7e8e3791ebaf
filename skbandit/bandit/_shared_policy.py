"""A policy with one model of all arms, over features of contexts and arms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._guard import lock_of
from skbandit.bandit._policy import PosteriorPolicy
from skbandit.bandit._state import FORGETTING, LINKS, read_rule, read_scales, unit_of_rewards
from skbandit.bandit.shared._arm_features import read_arm_features, rows_of_new_arms
from skbandit.logs import Codes, ascending, label_array
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import Interval, StrOptions
from skbandit.utils._validation import first_few

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from skbandit.bandit.shared._state import SharedPosterior, SharedPrior, Units

MOST_WEIGHTS = 200
"""Weights of all arms up to which a model with a full covariance forgets by default: with p of them
it costs p³ operations per 100 events."""


def _refusing_features(method: Callable[..., Any]) -> Any:
    """Refuse features of arms in a call of a method, where `describe_arms` takes them."""

    @wraps(method)
    def call(self: SharedGLMPolicy, *args: Any, **given: Any) -> Any:
        if "arm_features" in given:
            raise TypeError(
                f"{method.__name__}() takes no arm_features: call describe_arms(arm_features) "
                "before, which makes the arms known."
            )
        return method(self, *args, **given)

    return call


class SharedGLMPolicy(PosteriorPolicy):
    """Contextual bandit with one Bayesian GLM for all arms, based on features of the arms.

    In context x, the reward of an arm with features z depends on θ = x̃ᵀB z̃ + x̃ᵀw, where
    x̃ = (x, 1) and z̃ = (z, 1). B has a weight per product of features and per main effect; w are the
    arm's own weights. Arms share B, so an arm never played before is scored by its features. Use it
    for many arms, and for arms that come and go.

    Parameters
    ----------
    arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
        Finite numbers, one row per arm, with the arms' labels as index. `describe_arms` adds
        further arms. With None, and none described later, arms differ by their own weights only.
    link : {"linear", "logistic", "probit"}, default="logistic"
        Reward model, as in `GLMUCBPolicy`.
    alpha : float or callable, default=0.2
        Amount of exploration, as in `GLMUCBPolicy`.
    exploration : {"ucb", "epsilon_greedy", "thompson", "squarecb", "greedy"}, default="ucb"
        Rule by which `select` explores, as in `GLMUCBPolicy`.
    epsilon : float, default=0.1
        Probability of a uniform choice. Only "epsilon_greedy" uses it.
    covariance : {"full", "diagonal"}, default="full"
        Whether the entries of B are correlated or independent. The cost per event is quadratic or
        linear in their number, p = (n_features + 1)(n_arm_features + 1).
    prior_variance : float or "scaled", default="scaled"
        Prior variance of the entries of B for standardized features; that of the constant is 1.
        "scaled" mixes models of all scales s in `prior_scale`, as in `GLMUCBPolicy`, with √s for
        the constant.
    prior_scale : float or array-like, default=(0.3, 1, 3)
        Prior scales of "scaled". Learning time grows with their number.
    own_variance : float, default=0.3
        Prior variance of the arms' own weights; with "scaled", that under the scale 1, and
        ``own_variance / s`` under the scale s. A model then explains rewards mostly by the features
        or mostly by the arms themselves, and the mixture finds out which. 0 leaves all differences
        to the features.
    noise_variance : float or "auto", default="auto"
        Noise variance of linear rewards. "auto" estimates it, takes all other variances as
        multiples of it, and rewards relative to the first one: rewards r and a r + b, with a > 0,
        lead to the same choices.
    standardize : bool, default=True
        Whether to standardize features of contexts by the contexts learned so far, and those of
        arms by the arms described.
    forgetting : "auto" or float, default="auto"
        Factor, from .001 to 1, by which earlier evidence is discounted at each event; evidence
        about an arm's own weights, at each event of the arm. With a full covariance, several events
        discount at once, by a factor of about .5. "auto": as in `GLMUCBPolicy`, one more model
        with .995, but of the largest prior scale. It needs a logistic or probit link, several
        scales, and with a full covariance at most 200 weights,
        (n_features + 1) x (n_arm_features + 1).
    update_every : float, str or timedelta, default=None
        Length of update windows, as in `GLMUCBPolicy`.
    columns : dict, default=None
        Names of a log's columns that differ, as in `GLMUCBPolicy`.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices, as in `GLMUCBPolicy`.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels: the arms described or learned first, in ascending order, then later ones.
    arm_features_ : DataFrame of shape (n_arms, n_arm_features)
        Features of `arms_`.
    coef_ : ndarray of shape (n_features + 1, n_arm_features + 1)
        Posterior mean of B for features as given, those of contexts in rows, constants last.
    own_coef_ : ndarray of shape (n_arms, n_features + 1)
        Posterior means of the arms' own weights for features as given, the constant's last.
    scale_weights_ : ndarray of shape (n_scales,)
        Weights of the prior scales, which sum to 1.
    n_updates_ : ndarray of shape (n_arms,)
        Number of events learned per arm.
    last_timestamp_ : float
        Time of the latest event, in seconds; nan if no event had a timestamp.
    n_features_in_ : int
        Number of features of contexts.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.GLMUCBPolicy : One model per arm, for arms with many events each.
    skbandit.evaluation.replay : Estimates a policy's mean reward from a log.

    Notes
    -----
    Learning is exact for linear rewards, except that the covariances of an arm's own weights are
    dropped so that the cost of an event does not grow with the number of arms. With a full
    covariance and one prior scale, a choice among n arms takes
    p² + n (n_arm_features² + n_features) operations. Sparse contexts become dense.

    If any arm has features, all arms of a log or of `available` need them. The features of a known
    arm cannot change; put features that change from event to event into the context.

    Examples
    --------
    Articles are described by their topic, and readers by a taste. The policy scores new articles by
    their topic:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.bandit import SharedGLMPolicy
    >>> articles = pd.DataFrame({"sport": [1, 1, 0, 0]}, index=["cup", "race", "vote", "law"])
    >>> rng = np.random.default_rng(0)
    >>> policy = SharedGLMPolicy(articles, random_state=0)
    >>> for _ in range(300):
    ...     reader = rng.normal(size=(1, 1))
    ...     shown = policy.select(reader)
    ...     liked = (reader[0, 0] > 0) == (articles.loc[shown[0], "sport"] == 1)
    ...     policy = policy.partial_fit(reader, pd.DataFrame({"action": shown, "reward": [liked]}))
    >>> new = pd.DataFrame({"sport": [1, 0]}, index=["final", "debate"])
    >>> policy = policy.describe_arms(new)
    >>> policy.predict([[1.5], [-1.5]], available=["final", "debate"])
    array(['final', 'debate'], dtype=object)
    """

    # what the links of `GLMUCBPolicy` leave to the user
    ucb: ClassVar[str] = "U0"
    mean: ClassVar[str] = "M0"
    fit_intercept: ClassVar[bool] = True

    _posterior: SharedPosterior
    _arm_columns: list[Any]  # names of the arms' features
    _described: np.ndarray | None  # (n_arms, n_arm_features), as given; None before any arm is
    _arm_units: Units | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PosteriorPolicy._parameter_constraints,
        "arm_features": [pd.DataFrame, None],
        "prior_variance": [Interval(Real, 0, None, closed="neither"), StrOptions({"scaled"})],
        "own_variance": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
    }

    def __init__(
        self,
        arm_features: pd.DataFrame | None = None,
        link: str = "logistic",
        alpha: float | Callable[[np.ndarray], ArrayLike] = 0.2,
        *,
        exploration: str = "ucb",
        epsilon: float = 0.1,
        covariance: str = "full",
        prior_variance: float | str = "scaled",
        prior_scale: float | ArrayLike = (0.3, 1, 3),
        own_variance: float = 0.3,
        noise_variance: float | str = "auto",
        standardize: bool = True,
        forgetting: float | str = "auto",
        update_every: float | str | timedelta | None = None,
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.arm_features = arm_features
        self.link = link
        self.alpha = alpha
        self.exploration = exploration
        self.epsilon = epsilon
        self.covariance = covariance
        self.prior_variance = prior_variance
        self.prior_scale = prior_scale
        self.own_variance = own_variance
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.forgetting = forgetting
        self.update_every = update_every
        self.columns = columns
        self.random_state = random_state

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

    @property
    def arm_features_(self) -> pd.DataFrame:
        """Features of `arms_`, as they were given."""
        check_is_fitted(self)
        values = np.empty((len(self._codes), 0)) if self._described is None else self._described
        labels = pd.Index(self._labels, dtype=self._labels.dtype)
        return pd.DataFrame(values.copy(), index=labels, columns=self._arm_columns)

    @property
    def coef_(self) -> np.ndarray:
        """Posterior mean of B for features as given, of shape (dx, dz), constants last."""
        from skbandit.bandit.shared._state import as_given

        check_is_fitted(self)
        posterior = self._posterior
        of_arms = None if self._arm_units is None else as_given(self._arm_units)
        mean = np.einsum("e,eij->ij", posterior.share, posterior.mean[0])
        mean[-1, -1] += unit_of_rewards(posterior)[0]
        left = as_given(posterior.units).T @ mean
        return left if of_arms is None else left @ of_arms

    @property
    def own_coef_(self) -> np.ndarray:
        """Posterior means of the arms' own weights for features as given, the constant's last."""
        from skbandit.bandit.shared._state import as_given

        check_is_fitted(self)
        posterior = self._posterior
        return np.einsum("e,kei->ki", posterior.share, posterior.own_mean) @ as_given(
            posterior.units
        )

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
        with lock_of(self), atomic_fit(self) as draft:
            if draft.__sklearn_is_fitted__():
                draft._describe(arm_features)
                draft._sort_arms()
            else:
                table = read_arm_features(arm_features)
                if draft.arm_features is not None:
                    named = read_arm_features(draft.arm_features)
                    table = read_arm_features(table, named.columns)
                    codes = {label: k for k, label in enumerate(named.index.tolist())}
                    fresh = rows_of_new_arms(table, codes, named.to_numpy())
                    table = pd.concat([named, table.iloc[fresh]])
                draft.arm_features = table
        return self

    def _named_arms(self) -> list[Any] | None:
        return None if self.arm_features is None else self.arm_features.index.tolist()

    def _start(self) -> None:
        self._arm_columns, self._described, self._arm_units = [], None, None
        self._start_posterior(0)
        self._describe(self.arm_features)

    def _keep_arms(self, kept: np.ndarray) -> None:
        super()._keep_arms(kept)
        self._described = None if self._described is None else self._described[kept]

    def _start_posterior(self, dz: int) -> None:
        """Start from the prior, with this number of arm features."""
        from skbandit.bandit.shared._state import new_units, prior_posterior

        units = new_units(self.n_features_in_, self.standardize)
        prior, full = self._read_prior(dz + 1), self.covariance == "full"
        self._posterior = prior_posterior(units, dz + 1, full, prior)

    def _describe(self, arm_features: Any = None) -> None:
        """Add the arms of a table, if any, that are not known yet."""
        from skbandit.bandit.shared._state import new_units

        if arm_features is None:
            return
        if self._described is None and self._codes:
            raise ValueError(
                f"the arms {first_few(self._codes)} were learned without features: a policy whose "
                "arms have features must know them from the start; fit it anew."
            )
        columns = None if self._described is None else self._arm_columns
        table = read_arm_features(arm_features, columns)
        labels = table.index.tolist()
        if not self._codes and (ordered := ascending(labels)):
            table, labels = table.iloc[[labels.index(label) for label in ordered]], ordered
        if self._described is None:
            dz = table.shape[1]
            self._arm_columns, self._described = table.columns.tolist(), np.empty((0, dz))
            self._arm_units = new_units(dz, self.standardize, first_renewal=2)
            self._start_posterior(dz)
        rows = rows_of_new_arms(table, self._codes, self._described)
        if len(rows):
            fresh, values = [labels[row] for row in rows], np.ascontiguousarray(table)[rows]
            codes = self._codes | {k: len(self._codes) + i for i, k in enumerate(fresh)}
            self._check_new_arms(codes)
            self._described = np.concatenate([self._described, values])
            self._renew_arm_units(values)
            self._posterior = self._append_arms(fresh, values)
            self._know(codes)

    def _sum_up(self, base: Self, workers: dict[str, Self], labels: list[Any]) -> None:
        states = [base, *workers.values()]
        values: dict[Any, np.ndarray] = {}
        for state in states:
            if state._described is not None:
                values |= dict(zip(state._codes, state._described, strict=True))
                columns = state._arm_columns
        if values:
            index = pd.Index(labels, tupleize_cols=False)
            table = pd.DataFrame([values[label] for label in labels], index, columns)
            grows = len(labels) > len(base._codes)
            for state in states:  # in the same units of arms, those of all
                state._describe(table)
                if grows and self.standardize:
                    assert state._arm_units is not None
                    due = np.array([state._arm_units.seen[0], 0.0])
                    state._arm_units = state._arm_units._replace(seen=due)
                    state._renew_arm_units(np.empty((0, len(columns))))
        super()._sum_up(base, workers, labels)
        self._arm_columns, self._described = base._arm_columns, base._described
        self._arm_units = base._arm_units

    def _merged(
        self, base: SharedPosterior, workers: list[SharedPosterior]
    ) -> tuple[SharedPosterior, np.ndarray]:
        from skbandit.bandit.shared._state import merged

        return merged(base, workers, self._prior())

    def _renew_arm_units(self, values: np.ndarray) -> None:
        """Standardize the features of arms anew, if there are twice as many arms."""
        from skbandit.bandit._units import GROWN, count_row
        from skbandit.bandit.shared import _state as shared

        assert self._arm_units is not None and self._described is not None
        units = shared.Units(*(array.copy() for array in self._arm_units))
        for row in range(len(values)):
            count_row(values, row, 1.0, units.mean, units.squares, units.seen)
        self._arm_units = units
        away, squares = (values - units.mean) ** 2, units.squares
        grown = (units.rate == 0) | (
            len(squares) * squares * units.rate**2 > GROWN**2 * units.seen[0]
        )
        two_alike = (squares > 0) & (squares <= units.seen[0] * away) & (2 * away <= squares)
        if self.standardize and (grown & two_alike).any():  # of features that vary since lately
            units.seen[1] = 0.0
        factor, shift = np.empty(values.shape[1]), np.empty(values.shape[1])
        if not shared.renew_if_due(units, factor, shift):
            return
        posterior = self._posterior
        mean, cov_factor = posterior.mean.copy(), posterior.cov_factor.copy()
        _, _, dx, dz = mean.shape
        variance = shared.prior_variances(dx, dz, self._prior())
        for e in range(len(variance)):
            mean[0, e], cov_factor[e] = shared.in_new_units(
                factor, shift, mean[0, e], cov_factor[e], variance[e]
            )
        Z = shared.in_units(self._described[: len(posterior.Z)], units)
        self._posterior = posterior._replace(mean=mean, cov_factor=cov_factor, Z=Z)

    def _append_arms(self, labels: list[Any], values: np.ndarray) -> SharedPosterior:
        """Return posterior about new arms, too."""
        from skbandit.bandit.shared._state import append_arms, in_units

        Z = np.ones((len(labels), 1))
        if self._arm_units is not None:
            Z = in_units(values, self._arm_units)
        return append_arms(self._posterior, labels, Z, self._prior())

    def _posterior_about(self, codes: Codes) -> SharedPosterior:
        """Return posterior about the known arms and new ones, which need no features."""
        if len(codes) == len(self._codes):
            return self._posterior
        new = list(codes)[len(self._codes) :]
        self._check_described(label_array(new))
        return self._append_arms(new, np.empty((len(new), 0)))

    def _check_described(self, labels: np.ndarray) -> None:
        """Require features of arms, if any arm has them."""
        if self._described is not None:
            new = [label for label in labels.tolist() if label not in self._codes]
            if new:
                raise ValueError(
                    f"arm {new[0]!r} has no features: describe it by describe_arms, as the "
                    f"{len(self._codes)} arms known are."
                )

    def _prior(self) -> SharedPrior:
        prior = self._read_prior(self._posterior.mean.shape[3])
        self._check_models(len(prior.variance))
        return prior

    def _read_prior(self, dz: int) -> SharedPrior:
        """Return prior for arms of which there are this number of features, with the constant."""
        from skbandit.bandit.shared._state import WIDE, SharedPrior

        has_noise = LINKS[self.link].has_noise
        estimated = has_noise and self.noise_variance == "auto"
        variance, scales = np.atleast_1d(self.prior_variance), np.ones(1)
        if isinstance(self.prior_variance, str):
            variance = scales = read_scales(self.prior_scale)
        forgetting, cheap = np.ones(len(scales)), self.covariance == "diagonal"
        cheap |= (self.n_features_in_ + 1) * dz <= MOST_WEIGHTS
        if self.forgetting == "auto" and len(scales) > 1 and not has_noise and cheap:
            forgetting = np.append(forgetting, FORGETTING)
            variance = scales = np.append(scales, scales.max())
        elif self.forgetting != "auto":
            forgetting[:] = self.forgetting
        return SharedPrior(
            variance=variance.astype(np.float64),
            constant_variance=np.full(len(scales), WIDE) if estimated else np.sqrt(scales),
            own_variance=float(self.own_variance) / scales,
            noise_variance=1.0 if self.noise_variance == "auto" else float(self.noise_variance),
            estimates_noise=estimated,
            forgetting=forgetting,
            checks=self.forgetting == "auto",
        )

    def _alpha(self) -> float:
        from skbandit.bandit.exploration import alpha_scale
        from skbandit.bandit.shared._bilinear import noise_scale

        scale = alpha_scale(noise_scale(self._posterior.noise), read_rule(self))
        return super()._alpha() * float(scale)

    def _rows(self, X: Any) -> np.ndarray:
        X = super()._rows(X)
        return X.toarray() if issparse(X) else X


for _name in ("fit", "partial_fit", "predict", "select", "select_proba"):
    setattr(SharedGLMPolicy, _name, _refusing_features(getattr(PosteriorPolicy, _name)))
