"""A Pipeline whose last step is a policy or a selector."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from skbandit.logs import align_rows
from skbandit.utils._folds import behind_transformers, transformed
from skbandit.utils._sklearn_compat import available_if
from skbandit.utils._validation import refuse_lazy, warn_if_reordered

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


def select(policy: Any, X: Any, *, available: Any = None, return_proba: bool = False) -> Any:
    """Choose an arm per row, exploring, with a policy that may be the last step of a Pipeline.

    `Pipeline.predict` returns the policy's greedy choice; a Pipeline has no `select`, but
    `PolicyPipeline` does.

    Parameters
    ----------
    policy : object with select, Pipeline that ends in one, or fitted search over either
        The policy, which may count its choices.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Contexts, as the first transformer takes them.
    available : array-like, default=None
        The labels of the arms available in each row, or as the policy takes them; None makes
        every arm that the policy knows available.
    return_proba : bool, default=False
        Whether to return the probabilities of the choices, too.

    Returns
    -------
    ndarray of shape (n_samples,), or a pair of them
        Arm labels; with `return_proba`, also their probabilities.

    Raises
    ------
    AttributeError
        If the last step has no `select`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.bandit import select
    >>> from skbandit.datasets import make_bandit_log
    >>> log = make_bandit_log(2000, n_arms=3, random_state=0)
    >>> policy = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    >>> policy = policy.fit(log.X, log.y)
    >>> choices = select(policy, log.X[:4], available=[(1,), (2,), (1,), (0,)])
    >>> choices.tolist()
    [1, 2, 1, 0]
    """
    available = align_rows(available, X)
    policy, X = behind_transformers(policy, X)
    # a policy of another library need not know the option
    options = {"return_proba": True} if return_proba else {}
    return policy.select(X, available=available, **options)


def _last_step_has(name: str) -> Callable[[Any], bool]:
    """Check for a method of the last step; its absence raises the step's own AttributeError."""

    def check(pipeline: Any) -> bool:
        getattr(pipeline.steps[-1][1], name)
        return True

    return check


def _of_rows(name: str) -> Any:
    """Return a method of pipelines that is the last step's, of rows behind the transformers."""

    def method(self: PolicyPipeline, X: Any, *args: Any, **params: Any) -> Any:
        self._validate_steps()
        if "available" in params:
            params["available"] = align_rows(params["available"], X)
        y = args[0] if args else params.get("y")
        others = {other: params.get(other) for other in ("sample_weight", "attributes")}
        warn_if_reordered({"X": X, "y": y, **others})
        last, before = self.steps[-1][1], self[:-1] if len(self.steps) > 1 else None
        result = getattr(last, name)(transformed(before, X), *args, **params)
        of_rows = isinstance(result, pd.DataFrame) and name != "constraint_report"
        if of_rows and isinstance(X, pd.DataFrame):
            return result.set_axis(X.index)
        return self if result is last else result

    return _named(method, name, "of rows as the first transformer takes them")


def _of_last_step(name: str) -> Any:
    """Return a method of pipelines that is the last step's."""

    def method(self: PolicyPipeline, *args: Any, **params: Any) -> Any:
        last = self.steps[-1][1]
        result = getattr(last, name)(*args, **params)
        return self if result is last else result

    return _named(method, name, "as given")


def _named(method: Any, name: str, arguments: str) -> Any:
    method.__name__, method.__qualname__ = name, f"PolicyPipeline.{name}"
    method.__doc__ = f"Call `{name}` of the last step, {arguments}."
    return available_if(_last_step_has(name))(method)


class PolicyPipeline(Pipeline):
    """Pipeline of transformers and a policy or selector, with the methods of the last step.

    scikit-learn's `Pipeline`, which has `fit` and `predict`, and in addition the exploring choice
    of a policy, its probabilities, and learning as events arrive; and the costs that a selector
    predicts.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names, transformers, and a policy or selector as the last step.
    transform_input : list of str, default=None
        As in `Pipeline`.
    memory : str or object with the interface of joblib.Memory, default=None
        As in `Pipeline`.
    verbose : bool, default=False
        As in `Pipeline`.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels of the policy's arms.
    ads_ : ndarray of shape (n_ads,)
        Labels of the selector's ads.
    n_select : int
        Number of labels that the last step chooses per row.
    named_steps : Bunch
        Steps by name.

    See Also
    --------
    make_policy_pipeline : Names the steps by their types.
    skbandit.bandit.select : The exploring choice of a policy behind a plain `Pipeline`.

    Notes
    -----
    Transformers are fitted by `fit`, and by the first `partial_fit` if they are not fitted yet;
    afterwards `partial_fit` applies them as they are. A transformer that changed would change the
    meaning of the features that the policy has learned. To fit them on more than the first events,
    call `fit` on some history first. Fitted are clones of the given transformers, to be found in
    ``named_steps``.

    `reward`, `available`, `sample_weight` and other parameters without the name of a step, such as
    `ad_features` and `attributes`, are passed to the last step, with metadata routing and without.
    Results of the last step that are DataFrames get the index of X.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.bandit import PolicyPipeline
    >>> from skbandit.datasets import make_bandit_log
    >>> log = make_bandit_log(2000, n_arms=3, random_state=0)
    >>> policy = PolicyPipeline([("scale", StandardScaler()), ("policy", GLMUCBPolicy())])
    >>> policy = policy.fit(log.X[:1000], log.y[:1000])
    >>> policy = policy.partial_fit(log.X[1000:], log.y[1000:])
    >>> policy.select(log.X[:4], available=[(1,), (2,), (1,), (0,)]).tolist()
    [1, 2, 1, 0]
    >>> policy.select_proba(log.X[:4]).shape
    (4, 3)

    A selector, whose costs keep the labels of the rows:

    >>> import pandas as pd
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from skbandit import RegressionSetSelector
    >>> X = pd.DataFrame({"region": ["east", "west", "east"]}, index=["u1", "u2", "u3"])
    >>> costs = pd.DataFrame({"a": [-1.0, 0.0, -1.0], "b": [0.0, -1.0, 0.0]}, index=X.index)
    >>> selector = PolicyPipeline([("encode", OneHotEncoder()), ("best", RegressionSetSelector())])
    >>> selector.fit(X, costs).predict_costs(X).round(1)
          a    b
    u1 -1.0 -0.0
    u2 -0.0 -1.0
    u3 -1.0 -0.0
    """

    steps: list[tuple[str, Any]]

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        *,
        transform_input: list[str] | None = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the policy's arms."""
        return self.steps[-1][1].arms_

    @property
    def ads_(self) -> np.ndarray:
        """Labels of the selector's ads."""
        return self.steps[-1][1].ads_

    @property
    def n_select(self) -> int:
        """Number of labels that the last step chooses per row."""
        return self.steps[-1][1].n_select

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit the transformers, and learn the events of a log in order, or costs.

        An error leaves the pipeline unchanged.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts, as the first transformer takes them.
        y : DataFrame, dict or structured array with columns action and reward, or array of actions
            The log; for a selector, the costs.
        reward, available, sample_weight : array-like, default=None
            For the last step, as in its `fit`.
        **params : dict
            Further parameters of steps, as in `Pipeline.fit`; without the name of a step, of the
            last one, such as `ad_features` or `attributes`.

        Returns
        -------
        self
            Fitted pipeline.
        """
        options = {name: params.pop(name) for name in list(params) if "__" not in name}
        tables = {"reward": reward, "sample_weight": sample_weight}
        refuse_lazy(
            {"X": X, "y": y, **tables, "available": available},
            ", or let partial_fit of a policy learn from one part at a time",
        )
        warn_if_reordered({"X": X, "y": y, **tables, "attributes": options.get("attributes")})
        given = _given(available=align_rows(available, X), **tables, **options)
        if not get_config()["enable_metadata_routing"]:
            given = {f"{self.steps[-1][0]}__{name}": value for name, value in given.items()}
        draft = copy.copy(self)
        draft.steps = [
            *((name, step if _skips(step) else clone(step)) for name, step in self.steps[:-1]),
            self.steps[-1],
        ]
        super(PolicyPipeline, draft).fit(X, y, **params, **given)
        self.steps = draft.steps
        return self

    @available_if(_last_step_has("partial_fit"))
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Learn further events in order; transformers that are not fitted yet are fitted first.

        An error leaves the pipeline unchanged.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts, as the first transformer takes them.
        y : DataFrame, dict or structured array with columns action and reward, or array of actions
            The log.
        reward, available, sample_weight : array-like, default=None
            For the policy, as in its `partial_fit`.
        **params : dict
            Further parameters of the policy's `partial_fit`.

        Returns
        -------
        self
            Fitted pipeline.
        """
        self._validate_steps()
        tables = {"X": X, "y": y, "reward": reward, "sample_weight": sample_weight}
        refuse_lazy({**tables, "available": available}, ", or pass one part at a time")
        warn_if_reordered(tables)
        available = align_rows(available, X)
        fitted = list(self.steps)
        for k, (name, transformer) in enumerate(self.steps[:-1]):
            if _skips(transformer):
                continue
            if _is_fitted(transformer):
                X = transformer.transform(X)
            else:
                unfitted = clone(transformer)
                fitted[k] = (name, unfitted)
                X = unfitted.fit(X, y).transform(X)
        given = _given(reward=reward, available=available, sample_weight=sample_weight)
        self.steps[-1][1].partial_fit(X, y, **given, **params)
        self.steps = fitted
        return self

    @available_if(_last_step_has("merge"))
    def merge(self, policies: Sequence[Self], *, base: Self) -> Self:
        """Return a pipeline whose policy knows what several ones have learned.

        Parameters
        ----------
        policies : sequence of PolicyPipeline
            Pipelines that started from copies of `base`.
        base : PolicyPipeline
            Pipeline from which all of them started, with fitted transformers.

        Returns
        -------
        Self
            Pipeline with the transformers of `base` and the policy that the policy's own `merge`
            returns.

        Raises
        ------
        ValueError
            If a transformer of `base` is not fitted, or the policies cannot be merged.
        """
        for name, step in base.steps[:-1]:
            if not (_skips(step) or _is_fitted(step)):
                raise ValueError(
                    f"step {name!r} of base is not fitted, so each worker would fit its own: call "
                    "fit on some events before copying base."
                )
        name, policy = self.steps[-1]
        workers = [pipeline.steps[-1][1] for pipeline in policies]
        merged = copy.copy(self)
        last_step = policy.merge(workers, base=base.steps[-1][1])
        merged.steps = [*base.steps[:-1], (name, last_step)]
        return merged

    predict = _of_rows("predict")
    score = _of_rows("score")
    select = _of_rows("select")
    select_proba = _of_rows("select_proba")
    select_scores = _of_rows("select_scores")
    predict_reward = _of_rows("predict_reward")
    predict_costs = _of_rows("predict_costs")
    predict_indicator = _of_rows("predict_indicator")
    expected_costs = _of_rows("expected_costs")
    constraint_report = _of_rows("constraint_report")
    reprice = _of_rows("reprice")
    record = _of_last_step("record")
    advance = _of_last_step("advance")
    drop_arms = _of_last_step("drop_arms")
    describe_arms = _of_last_step("describe_arms")


def make_policy_pipeline(
    *steps: Any, memory: Any = None, transform_input: list[str] | None = None, verbose: bool = False
) -> PolicyPipeline:
    """Build a `PolicyPipeline` whose steps are named by their types.

    Parameters
    ----------
    *steps : estimators
        Transformers, and a policy or selector as the last step.
    memory : str or object with the interface of joblib.Memory, default=None
        As in `PolicyPipeline`.
    transform_input : list of str, default=None
        As in `PolicyPipeline`.
    verbose : bool, default=False
        As in `PolicyPipeline`.

    Returns
    -------
    PolicyPipeline
        The pipeline.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.bandit import make_policy_pipeline
    >>> policy = make_policy_pipeline(StandardScaler(), GLMUCBPolicy(arms=["a", "b"]))
    >>> [name for name, _ in policy.steps]
    ['standardscaler', 'glmucbpolicy']
    """
    return PolicyPipeline(
        make_pipeline(*steps).steps, memory=memory, transform_input=transform_input, verbose=verbose
    )


def _given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _skips(step: Any) -> bool:
    """Return whether a step passes on what it gets."""
    return step is None or step == "passthrough"


def _is_fitted(transformer: Any) -> bool:
    """Return whether a transformer can be applied; one without a state always can."""
    with suppress(NotFittedError):
        check_is_fitted(transformer)
        return True
    return False
