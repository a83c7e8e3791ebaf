"""SetSelectClassifier: plumbing around rounds of cost-sensitive classification."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skbandit.selection._costs import check_n_select
from skbandit.selection._m_lowest import lowest
from skbandit.selection._rounds import (
    MASKED,
    POST_NEXT_BEST,
    POST_RANDOM,
    last_to_first,
    replace_at_random,
    run_rounds,
    train_rounds,
)
from skbandit.selection.reductions._mixin import Examples, ReducedMixin
from skbandit.selection.reductions._registry import (
    REDUCTIONS,
    ROUND_BY_ROUND,
    WITH_COSTS,
    reduction,
)
from skbandit.selection.reductions._rule import Rule
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._progress import fit_task
from skbandit.utils._sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SCHEMES = {
    ("masked", "next_best"): MASKED,
    ("masked", "random"): MASKED,
    ("post", "next_best"): POST_NEXT_BEST,
    ("post", "random"): POST_RANDOM,
}


class SetSelectClassifier(ReducedMixin, CallbackSupportMixin, BaseEstimator):
    """Chooses m ads in rounds: the k-th cost-sensitive classifier adds the k-th ad.

    A reduction of choosing sets to classification [1]_: costs are compared, not predicted.

    Parameters
    ----------
    estimator : classifier or regressor, default=None
        The learner that `reduction` asks; its `fit` should take `sample_weight`. None is
        ``LogisticRegression(max_iter=1000)``, and `Ridge` for the reduction to regression.
    n_select : int, default=1
        How many ads to choose, m.
    reduction : {"filter_tree", "weighted_all_pairs", "regression", "one_vs_rest"}, \
default="filter_tree"
        How one round finds the cheapest ad: see `skbandit.selection.reductions`.
    method : {"masked", "post"}, default="masked"
        "masked": a round is trained and asked on the ads not chosen by the rounds before.
        "post": on all ads, those chosen before being worthless, as published [1]_.
    include_chosen : bool or "auto", default="auto"
        Whether learners see which ads are out, chosen already or not available, as n_ads more
        features. "auto" is True for the filter tree in masked rounds, else False.
    cross_fit : int or None, default=5
        What earlier rounds choose on the training rows is chosen by learners which have not
        seen the row, in so many folds; None is by those that have. Without masks and without
        `include_chosen` it would do harm, and is not done.
    dedup : {"next_best", "random"}, default="next_best"
        For "post": what takes the place of an ad chosen twice. The next best one by the round's
        classifier; or one drawn at random, after all rounds, as published.
    holes : bool or "auto", default="auto"
        Whether to choose, worst first, the n_ads - m ads to leave out. "auto" does for
        m > n_ads / 2 if all ads were available in `fit`.
    n_rounds : int, default=None
        How many rounds to train, so that `predict` can choose as many; None is `n_select`. With
        more, fewer duplicates have to be replaced at random.
    random_state : int, RandomState or None, default=None
        Shuffles rows into folds, and draws what ``dedup="random"`` does, alike in each call of
        `predict`.
    n_jobs : int, default=None
        Folds fitted at the same time, or, without them, matches or ads within a round.
    verbose : int, default=0
        Whether to print a line after each round. With scikit-learn 1.9 or newer,
        ``set_callbacks(sklearn.callback.ProgressBar())`` shows a progress bar.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, else 0, 1, ...
    n_rounds_ : int
        Rounds trained: of ads to choose, or to leave out.
    holes_ : bool
        Whether they choose ads to leave out.
    include_chosen_ : bool
        Whether learners see which ads are out.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any that are all strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Predicts costs; chooses among ads not seen in training.
    skbandit.selection.PopularitySetSelector : The baseline that does not look at X.
    skbandit.selection.logged_costs : Costs from logs of what was shown.

    Notes
    -----
    With q the mean regret of the rounds, each as a cost-sensitive problem of its own, the regret
    of the sets is at most m q. Masked rounds need nothing for that: the cheapest ad left costs no
    more than the k-th cheapest of all. Rounds as published need costs that are not positive; their
    costs are shifted by the highest one of each row, if that is positive. Leaving ads out makes it
    (n_ads - m) q. What chose the ads of earlier rounds must not have seen the row's own costs:
    hence `cross_fit`.

    What all pairs, one against the rest and regression learn of an ad or a pair does not depend on
    the round, unless their learners see what was chosen. So in masked rounds without
    `include_chosen` they are trained once, on all rows; each round takes the best ad left, and
    `cross_fit` and `holes` change nothing. With regression this is `RegressionSetSelector`. The
    filter tree is trained anew in each round, as other ads meet in its matches then.

    Rounds as published choose many ads twice, and are often worse than the most popular ads. With
    `logged_costs`, choose masked rounds: a shift of imputed costs does harm.

    Compare with `PopularitySetSelector`, which is hard to beat for m = 1 and for m close to n_ads.
    There also try ``holes=False`` if costs are noisy: the bound favours leaving ads out, the data
    do not always.

    References
    ----------
    .. [1] P. Mineiro, "Choosing m Advertisements from n Candidates", 2010.

    Examples
    --------
    >>> from skbandit import SetSelectClassifier
    >>> from skbandit.datasets import make_set_selection
    >>> from skbandit.selection import PopularitySetSelector
    >>> X, y, _ = make_set_selection(2000, n_ads=10, random_state=0)
    >>> X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
    >>> selector = SetSelectClassifier(n_select=3, random_state=0).fit(X_train, y_train)
    >>> selector.predict(X_test[:2]).shape
    (2, 3)
    >>> popularity = PopularitySetSelector(n_select=3).fit(X_train, y_train)
    >>> selector.score(X_test, y_test) > popularity.score(X_test, y_test)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "reduction": [StrOptions(set(REDUCTIONS))],
        "method": [StrOptions({"masked", "post"})],
        "include_chosen": ["boolean", StrOptions({"auto"})],
        "cross_fit": [Interval(Integral, 2, None, closed="left"), None],
        "dedup": [StrOptions({"next_best", "random"})],
        "holes": ["boolean", StrOptions({"auto"})],
        "n_rounds": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_select: int = 1,
        *,
        reduction: str = "filter_tree",
        method: str = "masked",
        include_chosen: bool | str = "auto",
        cross_fit: int | None = 5,
        dedup: str = "next_best",
        holes: bool | str = "auto",
        n_rounds: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_select = n_select
        self.reduction = reduction
        self.method = method
        self.include_chosen = include_chosen
        self.cross_fit = cross_fit
        self.dedup = dedup
        self.holes = holes
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> SetSelectClassifier:
        """Train the rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, of numbers.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, lower is better (pass minus the values of ads); nan is not observed, and such
            ads count in no comparison. The columns of a DataFrame name the ads. Entries that a
            sparse matrix does not hold are costs of 0.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads could be chosen, in the order of y or, a DataFrame, by column label.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        self : SetSelectClassifier

        Raises
        ------
        ValueError
            If there are fewer than n_select ads, an ad was never observed, the learner takes no
            sample weights though rows differ in what is at stake, or it is of the wrong kind.
        """
        with fit_task(self, X, y, sample_weight) as step_done, atomic_fit(self) as draft:
            draft._fit(X, y, available, sample_weight, step_done)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        available: Any,
        sample_weight: Any,
        step_done: Callable[[str], None],
    ) -> None:
        read = self._read_examples(X, y, available, sample_weight)
        self._settle(everything=available is None)
        random = check_random_state(self.random_state)
        folds = self._folds(len(read.costs), random)
        self._seed = random.randint(np.iinfo(np.int32).max)

        def report(k: int) -> None:
            if self.verbose:
                print(f"[SetSelectClassifier] round {k + 1} of {self.n_rounds_}")
            step_done("round")

        self._rules = self._learn(read, folds, report)

    def _settle(self, everything: bool) -> None:
        """Decide what None and "auto" leave open."""
        n_ads = len(self.ads_)
        check_n_select(self.n_select, n_ads)
        self._largest = self.n_select if self.n_rounds is None else self.n_rounds
        if not self.n_select <= self._largest <= n_ads:
            raise ValueError(
                f"n_rounds={self.n_rounds} must be at least n_select={self.n_select} and at most "
                f"{n_ads}, all ads."
            )
        masked, anew = self.method == "masked", self.reduction in ROUND_BY_ROUND
        self.include_chosen_ = (
            masked and anew if self.include_chosen == "auto" else bool(self.include_chosen)
        )
        first_told = 1 if everything else 0
        self._told_from = first_told if self.include_chosen_ else None
        self._once = masked and not anew and not self.include_chosen_
        self._by_cost = self._once and self.reduction in WITH_COSTS
        if self.holes == "auto":
            worth_it = everything and 2 * self.n_select > n_ads
            self.holes_ = masked and not self._once and worth_it and self.n_rounds is None
        elif self.holes and self.n_rounds is not None:
            raise ValueError("With holes=True the rounds are those to leave ads out: no n_rounds.")
        else:
            self.holes_ = bool(self.holes) and not self._once
        self.n_rounds_ = max(1, n_ads - self.n_select) if self.holes_ else self._largest
        self._scheme = _SCHEMES[self.method, self.dedup]

    def _folds(self, n_rows: int, random: np.random.RandomState) -> np.ndarray | None:
        """A fold for each row, or None."""
        helps = self.method == "masked" or self.include_chosen_
        if self.cross_fit is None or not helps or n_rows < 2:
            return None
        return random.permutation(n_rows) % self.cross_fit

    def _learn(
        self, read: Examples, folds: np.ndarray | None, report: Callable[[int], None]
    ) -> tuple[Rule, ...]:
        """What answers in each round."""
        if self._once:
            learn = reduction(self.reduction, self.estimator, self.n_jobs)
            return (learn(read.X, read.costs, read.available, read.weight),) * self.n_rounds_
        inside, outside = (self.n_jobs, None) if folds is None else (None, self.n_jobs)
        n_rows = len(read.costs)
        return train_rounds(
            read.X,
            -read.costs if self.holes_ else read.costs,
            read.available,
            read.weight,
            # with holes, each row takes part in one round at least, for the order of what is left
            np.maximum(1, read.available.sum(axis=1) - self.n_select)
            if self.holes_
            else np.full(n_rows, self.n_rounds_),
            reduction(self.reduction, self.estimator, inside),
            self._scheme,
            n_rounds=self.n_rounds_,
            told_from=self._told_from,
            folds=folds,
            n_jobs=outside,
            report=report,
        )

    @property
    def _reduction(self) -> str:
        return self.reduction

    @property
    def _predicts_costs(self) -> bool:
        one_fit = self.method == "masked" and self.include_chosen in ("auto", False)
        return self.reduction in WITH_COSTS and one_fit

    @property
    def _largest_set(self) -> int:
        return self._largest

    def _ranked(self, X: Any, available: np.ndarray, n_select: int) -> np.ndarray:
        if self._by_cost:  # rounds that differ in nothing but what is left
            return lowest(self._rules[0].respond(X), n_select, available)
        if self.holes_:  # all ads, worst first
            return last_to_first(self._picked(X, available, len(self.ads_)))[:, :n_select]
        return self._picked(X, available, n_select)

    def _picked(self, X: Any, available: np.ndarray, n_picks: int) -> np.ndarray:
        """As many ads as are asked for, in the order in which rounds pick them.

        Beyond the last round its classifier is asked again, for the next best.
        """
        rules = self._rules
        if not self._scheme.repeats:
            rules = (rules + rules[-1:] * (n_picks - len(rules)))[:n_picks]
        picks = run_rounds(rules, X, available, self._scheme, told_from=self._told_from)
        if self._scheme.repeats:
            random = np.random.RandomState(self._seed)
            return replace_at_random(picks, available, n_picks, random)
        return picks
