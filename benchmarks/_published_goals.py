"""The experiments of Goh et al. (2016), sections 4.1 and 4.2, with their settings.

The first run of `fairness` has the rows of a9a as published; further ones draw as many training
rows anew from all 48,842. `churning` draws its three datasets from Adult: the paper's are not
public.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, RampClassifier
from skbandit.datasets import load_a9a
from skbandit.rates import churn, error_rate, false_positive_rate, positive_rate, recall

INVERSE_KAPPAS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
"""1/kappa on the right of Figure 2."""

BOUNDS = (2.0, 0.4, 0.0, -1.0, -2.0, -3.0)
"""c of eq. 8; without a bound <w, gap> is about 1.2."""

TARGETS = (0.02, 0.03, 0.04, 0.05, 0.06)
"""Churn on D3; the paper's are .03 to .06."""

MM_STEPS = 5
"""Steps of Algorithm 1 in section 4.2."""


@dataclass(frozen=True)
class People:
    """Rows of Adult: sparse X, labels -1 and 1, and who is a man."""

    X: Any
    y: np.ndarray
    man: np.ndarray

    def rows(self, which: np.ndarray) -> People:
        """Some of them."""
        return People(self.X[which], self.y[which], self.man[which])

    def figures(self, positive: np.ndarray) -> tuple[float, float]:
        """Error and ratio of positive rates, given probabilities of a positive prediction."""
        error = np.mean(np.where(self.y > 0, 1 - positive, positive))
        return float(error), float(positive[self.man].mean() / positive[~self.man].mean())


def everybody() -> People:
    """The 32,561 training rows of a9a, and after them the 16,281 test rows."""
    parts = [load_a9a(subset=subset) for subset in ("train", "test")]
    y, man = (np.concatenate([part[key] for part in parts]) for key in ("target", "male"))
    return People(vstack([part.data for part in parts], format="csr"), y, man)


def split(people: People, run: int, n_train: int = 32_561) -> tuple[People, People]:
    """Training and test rows; of run 0 as published."""
    order = np.arange(len(people.y))
    if run:
        order = np.random.default_rng(run).permutation(order)
    return people.rows(order[:n_train]), people.rows(order[32_561:])


# --- section 4.1 ---------------------------------------------------------------------------


def fair(train: People, inverse_kappa: float) -> ConstrainedRampClassifier:
    """lambda = 1/n, no bias, from the all-zeros vector, nothing chosen by hard rates."""
    model = RampClassifier(
        constraints=positive_rate("man") <= inverse_kappa * positive_rate("woman"),
        alpha=1 / len(train.y),
        fit_intercept=False,
        init="zeros",
        threshold=False,
    )
    sex = pd.DataFrame({"man": train.man, "woman": ~train.man})
    with warnings.catch_warnings():
        # where hard rates miss the bound that the randomized rule meets, as in the paper
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(train.X, train.y, attributes=sex)


def covariance_bound(train: People, alpha: float = 1e-3) -> Callable[[float], Any]:
    """Eq. 8: a function of c that fits an SVM under <w, gap> <= c, and returns its scores of X."""
    import cvxpy as cp

    n, d = train.X.shape
    gap = train.X[train.man].mean(axis=0) - train.X[~train.man].mean(axis=0)
    w, b, slack, c = cp.Variable(d), cp.Variable(), cp.Variable(n, nonneg=True), cp.Parameter()
    problem = cp.Problem(
        cp.Minimize(cp.sum(slack) / n + alpha / 2 * cp.sum_squares(w)),
        [slack >= 1 - cp.multiply(train.y, train.X @ w + b), np.asarray(gap).ravel() @ w <= c],
    )

    def fit(bound: float) -> Callable[[Any], np.ndarray]:
        c.value = bound
        problem.solve(solver="CLARABEL")
        coef, intercept = np.array(w.value), np.array(b.value)
        return lambda X: np.asarray(X @ coef).ravel() + intercept

    return fit


def fairness(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 2: a row per run, 1/kappa and rule, and per run and c."""
    people = everybody()
    for run in range(runs):
        train, test = split(people, run, 4_000 if quick else 32_561)
        for inverse in INVERSE_KAPPAS:
            scores = test.X @ fair(train, inverse).coef_[0]
            answers = {
                "deterministic": (scores > 0).astype(float),
                "randomized": np.clip(0.5 + scores, 0, 1),
            }
            for rule, positive in answers.items():
                yield _fair_row(f"{rule}, 1/κ", inverse, run, test, positive)
        fit = covariance_bound(train)
        for bound in BOUNDS:
            yield _fair_row(
                "covariance, c", bound, run, test, (fit(bound)(test.X) > 0).astype(float)
            )


def _fair_row(
    rule: str, asked: float, run: int, test: People, positive: np.ndarray
) -> dict[str, Any]:
    figures = zip(("error", "men / women"), test.figures(positive), strict=True)
    return {"rule": rule, "asked": asked, "run": run} | dict(figures)


# --- section 4.2 ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Deployed:
    """D1, D2 and D3 of section 4.2, made from Adult, each split 80 to 20.

    D1 is what a deployed model was unsure of, D2 and D3 are drawn at random.

    Parameters
    ----------
    people : People
        All rows.
    answers : ndarray
        Of the deployed model, for all rows.
    train, test : dict
        Row numbers of "d1", "d2" and "d3".
    """

    people: People
    answers: np.ndarray
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]

    @classmethod
    def draw(cls, people: People, run: int, shrink: int = 1) -> Deployed:
        """Another deployed model and other datasets in each run."""
        rng = np.random.default_rng(run)
        rows = rng.permutation(len(people.y))[::shrink]
        first, pool, second, third = np.split(
            rows, [3_000 // shrink, 25_000 // shrink, 37_000 // shrink]
        )
        model = LogisticRegression(C=0.01, max_iter=500, class_weight={-1: 1, 1: 2})
        model.fit(people.X[first], people.y[first])
        unsure = np.argsort(np.abs(model.decision_function(people.X[pool])))[: 9_000 // shrink]
        sets = {"d1": rng.permutation(pool[unsure]), "d2": second, "d3": third}
        cuts = {name: len(d) * 4 // 5 for name, d in sets.items()}
        return cls(
            people,
            model.predict(people.X),
            {name: d[: cuts[name]] for name, d in sets.items()},
            {name: d[cuts[name] :] for name, d in sets.items()},
        )

    def labeled(self, part: dict[str, np.ndarray]) -> tuple[np.ndarray, pd.DataFrame]:
        """Rows of D1 and D2, and the columns that goals name."""
        rows = np.append(part["d1"], part["d2"])
        second = np.arange(len(rows)) >= len(part["d1"])
        columns = {"d1": ~second, "d2": second, "deployed": self.answers[rows]}
        return rows, pd.DataFrame(columns)

    def figures(self, score: Callable[[Any], np.ndarray]) -> list[float]:
        """Churn on D3, error on D1 and D2, recall on D2: in training, then in testing."""
        found = []
        for part in (self.train, self.test):
            rows, columns = self.labeled(part)
            p, q = score(self.people.X[rows]), score(self.people.X[part["d3"]])
            y, second = self.people.y[rows], columns["d2"].to_numpy()
            found += [
                np.mean(np.where(self.answers[part["d3"]] > 0, 1 - q, q)),
                np.mean(np.where(y > 0, 1 - p, p)),
                p[second & (y > 0)].mean(),
            ]
        return [float(x) for x in found]


CHURN_FIGURES = tuple(
    f"{what} {where}" for where in ("train", "test") for what in ("churn", "error", "recall")
)


def best_power_of_ten(X: Any, y: np.ndarray) -> float:
    """lambda of the unconstrained SVM with the fewest errors in threefold cross-validation."""
    grid = 10.0 ** np.arange(-6, -1)
    scores = [
        cross_val_score(LinearSVC(C=1 / (a * len(y)), max_iter=2_000), X, y, cv=3).mean()
        for a in grid
    ]
    return float(grid[int(np.argmax(scores))])


def stable(data: Deployed, alpha: float) -> Iterator[tuple[str, float, list[float]]]:
    """Figures of one run: rule, churn asked for (by the SVM none), and churn, error and recall."""
    rows, columns = data.labeled(data.train)
    X, y = data.people.X, data.people.y
    negatives = int(np.sum(y[data.train["d2"]] < 0))
    costs = (
        len(data.train["d1"]) * error_rate("d1") + negatives * false_positive_rate("d2")
    ) / len(rows)
    as_good = recall("d2") >= recall("d2").value(y[rows], columns["deployed"], columns)
    svm = LinearSVC(loss="hinge", C=1 / (alpha * len(rows)), max_iter=20_000, random_state=0)
    baseline = ConstrainedThreshold(
        svm.fit(X[rows], y[rows]), costs, as_good, cv="prefit", confidence_level=0.5
    )
    baseline.fit(X[rows], y[rows], attributes=columns)
    yield (
        f"thresholded SVM, λ = {alpha:g}",
        np.nan,
        data.figures(lambda Z: (baseline.predict(Z) > 0).astype(float)),
    )
    for target in TARGETS:
        model = RampClassifier(
            costs,
            [as_good, churn("deployed", on="extra") <= target],
            alpha=alpha,
            max_iter=MM_STEPS,
            threshold=False,
        )
        extra = data.train["d3"]
        model.fit(
            X[rows],
            y[rows],
            attributes=columns,
            X_extra=X[extra],
            attributes_extra=pd.DataFrame({"deployed": data.answers[extra]}),
        )
        coef, cut, drawn = model.coef_[0], model.intercept_[0], model.ramp_intercept_[0]
        answers = data.figures(partial(_cut, coef, cut))
        draws = data.figures(partial(_ramp, coef, drawn))
        yield "deterministic", target, answers
        yield "randomized", target, draws


def _cut(coef: np.ndarray, intercept: float, X: Any) -> np.ndarray:
    """1 where the score is positive."""
    return np.asarray(X @ coef + intercept > 0, dtype=float)


def _ramp(coef: np.ndarray, intercept: float, X: Any) -> np.ndarray:
    """Probability of a positive prediction by eq. 2."""
    return np.clip(0.5 + X @ coef + intercept, 0, 1)


def churning(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 3: a row per run, rule and churn target."""
    people = everybody()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # five steps are few
        warnings.simplefilter("ignore", UserWarning)  # hard rates are not looked at
        for run in range(runs):
            data = Deployed.draw(people, run, shrink=4 if quick else 1)
            if run == 0:
                rows, _ = data.labeled(data.train)
                alpha = best_power_of_ten(people.X[rows], people.y[rows])
            for rule, asked, figures in stable(data, alpha):
                named = zip(CHURN_FIGURES, figures, strict=True)
                yield {"rule": rule, "asked": asked, "run": run} | dict(named)
