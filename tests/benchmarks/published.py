"""The experiments of Goh et al. (2016), section 4, and of Li et al. (2012), with their settings.

python -m tests.benchmarks.published [--only fairness churn bandits] [--runs N] [--quick]

Each figure is a mean over runs, ± its standard deviation. The first run of `fairness` has the rows
of a9a as published; further ones draw as many training rows anew from all 48,842. `churn` draws
its three datasets from Adult (the paper's are not public), `bandits` makes a log.
"""

from __future__ import annotations

import argparse
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

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import load_a9a, make_bandit_log
from skbandit.evaluation import replay
from skbandit.rates import churn, error_rate, false_positive_rate, positive_rate, recall
from tests.benchmarks._table import Column, print_table

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
        """Error and ratio of positive rates, given probabilities of a positive answer."""
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
    model = ConstrainedRampClassifier(
        constraints=positive_rate("man") <= inverse_kappa * positive_rate("woman"),
        alpha=1 / len(train.y),
        fit_intercept=False,
        start="zeros",
        threshold=None,
        n_perturbations=0,
    )
    sex = pd.DataFrame({"man": train.man, "woman": ~train.man})
    with warnings.catch_warnings():
        # where hard rates miss the bound that the randomised rule meets, as in the paper
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


def fairness(people: People, runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 2: one row per 1/kappa and per c."""
    splits = [split(people, run, 4_000 if quick else 32_561) for run in range(runs)]
    for inverse in INVERSE_KAPPAS:
        cut, drawn = [], []
        for train, test in splits:
            scores = test.X @ fair(train, inverse).coef_[0]
            cut.append(test.figures((scores > 0).astype(float)))
            drawn.append(test.figures(np.clip(0.5 + scores, 0, 1)))
        for rule, found in (("deterministic", cut), ("randomised", drawn)):
            yield {"rule": rule, "asked": f"1/kappa = {inverse:g}"} | means(
                found, "error", "men/women"
            )
    fits = [covariance_bound(train) for train, _ in splits]
    for bound in BOUNDS:
        found = [
            test.figures((fit(bound)(test.X) > 0).astype(float))
            for fit, (_, test) in zip(fits, splits, strict=True)
        ]
        yield {"rule": "covariance", "asked": f"c = {bound:g}"} | means(found, "error", "men/women")


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

    def labelled(self, part: dict[str, np.ndarray]) -> tuple[np.ndarray, pd.DataFrame]:
        """Rows of D1 and D2, and the columns that goals name."""
        rows = np.append(part["d1"], part["d2"])
        second = np.arange(len(rows)) >= len(part["d1"])
        columns = {"d1": ~second, "d2": second, "deployed": self.answers[rows]}
        return rows, pd.DataFrame(columns)

    def figures(self, score: Callable[[Any], np.ndarray]) -> list[float]:
        """Churn on D3, error on D1 and D2, recall on D2: in training, then in testing."""
        found = []
        for part in (self.train, self.test):
            rows, columns = self.labelled(part)
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


def stable(data: Deployed, alpha: float) -> Iterator[tuple[str, str, list[float]]]:
    """Figures of one run: rule, churn asked for, and churn, error and recall."""
    rows, columns = data.labelled(data.train)
    X, y = data.people.X, data.people.y
    negatives = int(np.sum(y[data.train["d2"]] < 0))
    costs = (
        len(data.train["d1"]) * error_rate("d1") + negatives * false_positive_rate("d2")
    ) / len(rows)
    as_good = recall("d2") >= recall("d2").value(y[rows], columns["deployed"], columns)
    svm = LinearSVC(loss="hinge", C=1 / (alpha * len(rows)), max_iter=20_000, random_state=0)
    baseline = ConstrainedThreshold(svm.fit(X[rows], y[rows]), costs, as_good, cv="prefit")
    baseline.fit(X[rows], y[rows], attributes=columns)
    yield (
        "thresholded SVM",
        f"lambda = {alpha:g}",
        data.figures(lambda Z: (baseline.predict(Z) > 0).astype(float)),
    )
    for target in TARGETS:
        model = ConstrainedRampClassifier(
            costs,
            [as_good, churn("deployed", on="extra") <= target],
            alpha=alpha,
            max_iter=MM_STEPS,
            threshold=None,
            n_perturbations=0,
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
        yield "deterministic", f"churn <= {target:g}", answers
        yield "randomised", f"churn <= {target:g}", draws


def _cut(coef: np.ndarray, intercept: float, X: Any) -> np.ndarray:
    """1 where the score is positive."""
    return np.asarray(X @ coef + intercept > 0, dtype=float)


def _ramp(coef: np.ndarray, intercept: float, X: Any) -> np.ndarray:
    """Probability of a positive answer by eq. 2."""
    return np.clip(0.5 + X @ coef + intercept, 0, 1)


def churning(people: People, runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 3: one row per rule and churn target."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # five steps are few
        warnings.simplefilter("ignore", UserWarning)  # hard rates are not looked at
        for run in range(runs):
            data = Deployed.draw(people, run, shrink=4 if quick else 1)
            if run == 0:
                rows, _ = data.labelled(data.train)
                alpha = best_power_of_ten(people.X[rows], people.y[rows])
            for rule, asked, figures in stable(data, alpha):
                found.setdefault((rule, asked), []).append(figures)
    for (rule, asked), all_runs in sorted(found.items()):
        yield {"rule": rule, "asked": asked} | means(all_runs, *CHURN_FIGURES)


# --- section 5 of Li et al. ----------------------------------------------------------------


def rewards(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 1's reward models, with their delay of five minutes and 21 features."""
    log = make_bandit_log(100_000 if quick else 500_000, 20, 20, arm_effect=1.5, random_state=0)
    X = log.X / np.sqrt(log.X.shape[1])
    for link in ("linear", "logistic", "probit"):
        for exploration, amount in (
            ("greedy", 0.0), ("epsilon_greedy", 0.05), ("ucb", 0.2), ("ucb", 1.0)
        ):  # fmt: skip
            policy = GLMUCBPolicy(
                link,
                alpha=amount,
                epsilon=amount,
                exploration=exploration,
                prior_variance=1.0,
                standardize=False,
                update_every=DELAY,
                random_state=0,
            )
            result = replay(
                policy,
                X,
                log.y,
                deployment_share=0.3,
                subsample=0.5,
                n_repeats=max(runs, 2),
                random_state=0,
            )
            kept = result.runs[["mean_reward", "deployment_mean_reward"]] / result.logged_mean
            yield {"rule": f"{link}, {exploration}", "asked": f"{amount:g}"} | means(
                kept.to_numpy().tolist(), "learning", "deployment"
            )


DELAY = 100
"""Kept events between updates: about five minutes of the paper's 20 events a second, one in
twenty of which is kept in a half of them. What is learned takes effect then."""


def means(found: list[Any], *names: str) -> dict[str, Any]:
    """Mean, and ± standard deviation if there are several runs, of each figure."""
    figures = np.array(found, dtype=float)
    middle = figures.mean(axis=0)
    if len(figures) == 1:
        return {name: f"{m:.4f}" for name, m in zip(names, middle, strict=True)}
    spread = figures.std(axis=0, ddof=1)
    return {name: f"{m:.4f} ± {s:.4f}" for name, m, s in zip(names, middle, spread, strict=True)}


def columns(*names: str) -> tuple[Column, ...]:
    """Columns of a table of means."""
    return (Column("rule", 24), Column("asked", 14), *(Column(name, 15) for name in names))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.published",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ("fairness", "churn", "bandits")
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    parser.add_argument("--runs", type=int, default=1, help="the paper has 100, 10 and 5")
    parser.add_argument("--quick", action="store_true", help="few rows")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs {options.runs}: at least one run is needed")
    people = everybody()
    if "fairness" in options.only:
        title = "Goh et al. (2016), Figure 2: men's positive rate <= women's / kappa"
        rows = fairness(people, options.runs, options.quick)
        print_table(title, columns("error", "men/women"), rows)
    if "churn" in options.only:
        title = "Goh et al. (2016), Figure 3: recall as the deployed model's, churn on D3"
        rows = churning(people, options.runs, options.quick)
        print_table(title, columns(*CHURN_FIGURES), rows)
    if "bandits" in options.only:
        title = "Li et al. (2012), Figure 1: click rate over the log's"
        print_table(title, columns("learning", "deployment"), rewards(options.runs, options.quick))


if __name__ == "__main__":
    main()
