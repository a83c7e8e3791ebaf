"""One classifier or a list of them, as a parameter with names."""

from __future__ import annotations

from collections import Counter
from typing import Any

SINGLE = "estimator"
"""Name of the only classifier, where no list was passed."""


def named_models(estimator: Any) -> list[tuple[str, Any]]:
    """Names and classifiers, without checking them.

    A plain list takes the names of the classes in lower case, numbered where they are equal, as
    in scikit-learn's `make_pipeline`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> named_models([GaussianNB(), GaussianNB(priors=[0.9, 0.1])])
    [('gaussiannb-1', GaussianNB()), ('gaussiannb-2', GaussianNB(priors=[0.9, 0.1]))]
    """
    if not isinstance(estimator, list):
        return [(SINGLE, estimator)]
    if all(isinstance(one, tuple) and len(one) == 2 for one in estimator):
        return [(name, model) for name, model in estimator]
    plain = [type(one).__name__.lower() for one in estimator]
    total, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(name if total[name] == 1 else f"{name}-{seen[name]}")
    return list(zip(names, estimator, strict=True))


def check_models(estimator: Any, reserved: set[str]) -> list[tuple[str, Any]]:
    """Names and classifiers; errors name what is wrong with a list.

    Parameters
    ----------
    estimator : classifier, list of classifiers, or list of (name, classifier)
        The parameter.
    reserved : set of str
        Names of the other parameters.
    """
    if isinstance(estimator, list) and not estimator:
        raise ValueError("estimator is an empty list: pass a classifier, or several.")
    models = named_models(estimator)
    for name, model in models if isinstance(estimator, list) else []:
        if not isinstance(name, str):
            raise TypeError(f"estimator: the name {name!r} must be a string.")
        if "__" in name or name in reserved:
            raise ValueError(
                f"estimator: the name {name!r} is that of a parameter, or has '__' in it: choose "
                "another."
            )
        if not hasattr(model, "fit") or not any(
            hasattr(model, method) for method in ("predict_proba", "decision_function")
        ):
            raise TypeError(
                f"estimator: {name!r} must be a classifier with predict_proba or "
                f"decision_function, got {model!r}."
            )
    twice = [name for name, times in Counter(name for name, _ in models).items() if times > 1]
    if twice:
        raise ValueError(f"estimator has two classifiers of the name {twice[0]!r}.")
    return models
