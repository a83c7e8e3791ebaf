"""A policy that shows m arms at a time, over the models of a policy for single arms."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit.slates import _learner as feedbacks
from skbandit.bandit.slates._learner import SlateLearner
from skbandit.bandit.slates._models import ArmModels
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import HasMethods, Interval, StrOptions


class SlatePolicy(SlateLearner):
    """Contextual bandit that shows a slate of arms, and learns from what becomes of them.

    Each arm is judged by the models of a policy for single arms, and that policy's exploration rule
    chooses the slate. It learns from a reward per shown arm, from the first click of a visitor who
    looks from the top down, or from one reward per slate.

    Parameters
    ----------
    policy : GLMUCBPolicy or SharedGLMPolicy, default=None
        Models of single arms, and the rule by which `select` explores. None is
        ``GLMUCBPolicy(exploration="thompson")``, with ``link="linear"`` for one reward per slate.
    n_select : int, default=3
        Number of arms of a slate, m.
    feedback : {"semi_bandit", "cascade", "slate"}, default="semi_bandit"
        What is observed: the reward of each shown arm, nan where it is unknown; the first click,
        with what is below it not looked at; or a reward of the slate as a whole, taken to be a sum
        over its arms, which requires a `GLMUCBPolicy` with ``link="linear"``.
    columns : dict, default=None
        Names of a log's columns that differ, as in
        ``{"action": "arm_id", "reward": "clicked"}``: `fit`, `partial_fit`, and the functions and
        scorers that evaluate the policy read logs by them.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices, in place of the policy's own.

    Attributes
    ----------
    policy_ : GLMUCBPolicy or SharedGLMPolicy
        The fitted models.
    arms_ : ndarray of shape (n_arms,)
        Labels, in the order in which they were named or first learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Learns sets from costs of all ads, without exploring.
    skbandit.evaluation.replay_slates : Judges a learning policy on logged slates.
    skbandit.evaluation.slate_ips : Judges a fixed policy on logged slates.

    Notes
    -----
    The rule of the policy chooses as follows, among the arms available:

    - "thompson": the m largest of one draw per arm from its posterior.
    - "ucb", "greedy": the m largest upper bounds, or mean rewards.
    - "squarecb": arm a with the probability min(1, 1/(γ (λ - y_a))), where y are mean rewards, λ
      makes the probabilities sum to m, and γ = √(K n/m)/α² after n learned rewards: inverse gap
      weighting of single arms. The slate is a systematic sample with these probabilities.
    - "epsilon_greedy": a uniform slate with probability ε, else the m largest mean rewards.

    An arm is never shown twice in a slate. Slates are best first, in the order of what the rule
    compares: draws, upper bounds or mean rewards; the uniform slates of "epsilon_greedy" are in
    uniform order. So if places differ in weight, such as the probability to be looked at, fill them
    in the order of their weights: that is best for all weights. In learning, a place is taken not
    to matter, except in cascades.

    With one reward per slate, each arm learns from the reward less what is expected of the others,
    with their uncertainty added to the noise: the exact posterior of the sum, up to the
    correlations between arms. Slates must vary for the arms to be told apart.

    References
    ----------
    W. Chen, Y. Wang, Y. Yuan (2013). Combinatorial multi-armed bandit. ICML, PMLR 28, 151-159.

    B. Kveton, C. Szepesvári, Z. Wen, A. Ashkan (2015). Cascading bandits. ICML, PMLR 37, 767-776.

    D. Foster, A. Rakhlin (2020). Beyond UCB. ICML, PMLR 119, 3199-3210.

    Examples
    --------
    Visitors like two of four topics, those for which their feature is largest:

    >>> import numpy as np
    >>> from skbandit.bandit import SlatePolicy
    >>> rng = np.random.default_rng(0)
    >>> topics = ["news", "sports", "music", "films"]
    >>> policy = SlatePolicy(n_select=2, random_state=0)
    >>> for _ in range(300):
    ...     visitor = rng.normal(size=(1, 4))
    ...     slate = policy.select(visitor, available=topics)
    ...     clicked = [[rng.random() < 0.1 + 0.8 * (visitor[0, topics.index(topic)] > 0)
    ...                 for topic in slate[0]]]
    ...     policy = policy.partial_fit(visitor, slate, clicked)
    >>> policy.predict([[2.0, -1.0, 1.0, -1.0]])
    array([['news', 'music']], dtype=object)
    >>> round(float(policy.select_proba([[2.0, -1.0, 1.0, -1.0]]).sum()), 9)
    2.0
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "policy": [HasMethods(["select", "partial_fit"]), None],
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "feedback": [StrOptions(set(feedbacks.FEEDBACK))],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        policy: Any = None,
        n_select: int = 3,
        *,
        feedback: str = "semi_bandit",
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.policy = policy
        self.n_select = n_select
        self.feedback = feedback
        self.columns = columns
        self.random_state = random_state

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the arms of the largest mean rewards, without exploring.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_select)
            Labels, best first.
        """
        from skbandit.bandit.exploration._greedy import best

        models = self._models(X, available)
        chosen = best(models.scores(0, -1), self.n_select, None)
        return models.labels[chosen]

    def select(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the slates to show, exploring.

        Choices are counted, so that each has its own random numbers; a batch of choices equals
        the same choices one by one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms: the labels of each row, as in ``[("a", "b", "c"), ("b", "c")]``; or
            those of all rows, as in ``["a", "b", "c"]``; or a boolean table with one column per
            arm, an array's in the order of `arms_`. New arms have the prior. None makes all of
            `arms_` available.

        Returns
        -------
        ndarray of shape (n_samples, n_select)
            Labels, best first by what the rule compares, no label twice in a row.

        Raises
        ------
        ValueError
            If a row has fewer than `n_select` available arms.
        """
        from skbandit.bandit.exploration._sets import RULES

        models = self._models(X, available)
        seed, t = self._stream.take(len(models.available), self.random_state)
        rule = RULES[models.policy.exploration]
        return models.labels[rule.choose(models, self.n_select, seed, t)]

    def select_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Return the probability of each arm to be in the slate of `select`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Inclusion probabilities; columns as `arms_`. Rows sum to `n_select`, or less: the
            remainder is that of arms not in `arms_`. Exact, except that Thompson sampling's are
            integrated numerically, with an error of at most .002.
        """
        from skbandit.bandit.exploration._sets import RULES

        models = self._models(X, available)
        included = RULES[models.policy.exploration].inclusion(models, self.n_select)
        return included[:, : models.n_known]

    def predict_reward(self, X: Any) -> np.ndarray:
        """Predict the mean reward of every arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`. With one reward per slate, the arm's part of it.
        """
        check_is_fitted(self)
        return self.policy_.predict_reward(X)

    def _models(self, X: Any, available: Any) -> ArmModels:
        """Beliefs about the available arms, of which each row has enough."""
        if not hasattr(self, "policy_"):
            if available is None and self._knows_no_arms():
                raise NotFittedError(
                    f"This {type(self).__name__} knows no arms: fit it, or pass available= to act "
                    "by the prior."
                )
            with self._guard.learning:
                if not hasattr(self, "policy_"):  # another thread may have begun
                    with atomic_fit(self) as draft:
                        draft._validate_params()
                        draft._begin()
        models = ArmModels.of(self.policy_, X, available)
        count = models.available.sum(axis=1)
        short = np.flatnonzero(count < self.n_select)
        if len(short):
            raise ValueError(
                f"Row {short[0]} has {count[short[0]]} available arms, but n_select is "
                f"{self.n_select}. Make more arms available, or choose fewer (n_select=)."
            )
        return models

    def _knows_no_arms(self) -> bool:
        """Whether the policy, unfitted, names no arms."""
        named = ("arms", "arm_features")
        return all(getattr(self.policy, name, None) is None for name in named)
