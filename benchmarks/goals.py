"""Goals on new rows: methods x goals x data sets, with shares met, objective and cost.

python -m benchmarks.goals [--quick] [--sets ...] [--goals ...] [--methods ...] [--seeds ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks._goal_data import SETS, Part, absent
from benchmarks._goal_rivals import INSTALLED_BY, RIVALS, Answers, applies, linear, package_of
from benchmarks._goals import GOALS, Goal
from benchmarks._measure import in_fresh_process
from benchmarks._table import Column, print_table
from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, RampClassifier
from skbandit.exceptions import InfeasibleConstraintsError

SEEDS = (0, 1, 2)

COLUMNS = (
    Column("set", 13),
    Column("goal", 29),
    Column("method", 31),
    Column("runs", 4, ".0f"),
    Column("met", 4, ".2f"),
    Column("refused", 7, ".2f"),
    Column("objective", 9, ".4f"),
    Column("missed by", 9, "+.4f"),
    Column("cpu s", 6, ".2f"),
)


def trees() -> HistGradientBoostingClassifier:
    """The boosted base."""
    return HistGradientBoostingClassifier(random_state=0)


def ours(make: Callable[..., Any]) -> Callable[[Part, Goal], tuple[Answers, bool]]:
    """An estimator of ours: the fitted rule, or the closest one and that it was refused."""

    def fit(part: Part, goal: Goal) -> tuple[Answers, bool]:
        clf, refused = make(objective=goal.objective, constraints=goal.constraints), False
        try:
            clf.fit(part.X, part.y, attributes=part.attributes)
        except InfeasibleConstraintsError as error:
            clf, refused = error.closest_, True
        if getattr(clf, "by", None):
            return lambda new: clf.predict(new.X, attributes=new.attributes), refused
        return lambda new: clf.predict(new.X), refused

    return fit


def _ramp(**settings: Any) -> Any:
    return ours(lambda **goal: ConstrainedRampClassifier(**goal, **settings))


def _threshold(base: Callable[[], Any], **settings: Any) -> Any:
    return ours(lambda **goal: ConstrainedThreshold(base(), **goal, **settings))


def no_goal(part: Part, goal: Goal) -> tuple[Answers, bool]:
    """The linear base as it comes."""
    clf = linear().fit(part.X, part.y)
    return lambda new: clf.predict(new.X), False


METHODS: dict[str, Callable[[Part, Goal], tuple[Answers, bool]]] = {
    "no goal": no_goal,
    "ramp": _ramp(),
    "ramp, level .8": _ramp(confidence_level=0.8),
    "ramp, level .9": _ramp(confidence_level=0.9),
    "ramp, level .95": _ramp(confidence_level=0.95),
    "ramp, on its training rows": ours(lambda **goal: RampClassifier(**goal)),
    "threshold": _threshold(linear),
    "threshold, level .9": _threshold(linear, confidence_level=0.9),
    "threshold per group": _threshold(linear, by="group"),
    "threshold, trees": _threshold(trees),
    "reduction": ours(lambda **goal: ConstrainedReduction(linear(), **goal)),
    "reduction, trees": ours(lambda **goal: ConstrainedReduction(trees(), **goal)),
    **RIVALS,
}
"""Ours with the class's short name; "threshold per group" and some rivals ask the group."""

LINEAR = tuple(name for name in METHODS if not name.endswith("trees"))
"""Those compared by default: trees take minutes."""


def run(method: str, goal: Goal, split: Any) -> dict[str, float]:
    """Objective, miss and cost of one method on one split."""
    before = time.process_time()
    answers, refused = METHODS[method](split.train, goal)
    spent = time.process_time() - before
    p = np.asarray(answers(split.new), dtype=float)
    return {
        "objective": goal.cost(p, split.new),
        "missed by": goal.missed(p, split.new),
        "refused": float(refused),
        "cpu s": spent,
    }


def runs(
    name: str, goals: Sequence[str], methods: Sequence[str], seeds: Sequence[int]
) -> dict[str, Any]:
    """All runs on one data set, by goal and method; what failed is a text."""
    splits = [SETS[name](seed) for seed in seeds]
    found: dict[str, Any] = {}
    for goal in goals:
        for method in methods:
            if not applies(method, GOALS[goal]):
                continue
            if not found:  # imports and compiled code do not count
                run(method, GOALS[goal], splits[0])
            try:
                of_seeds = [run(method, GOALS[goal], split) for split in splits]
            except Exception as error:
                of_seeds = f"{type(error).__name__}: {error}".partition("\n")[0][:80]
            found[f"{goal}\n{method}"] = of_seeds
    return found


def summary(of_seeds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over runs, and the share that met their goals."""
    means = {key: float(np.mean([one[key] for one in of_seeds])) for key in of_seeds[0]}
    met = float(np.mean([one["missed by"] <= 1e-9 for one in of_seeds]))
    return {"runs": float(len(of_seeds)), "met": met, **means}


def rows(
    sets: Sequence[str], goals: Sequence[str], methods: Sequence[str], seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """A row for each goal and method, then one or two for each method over the goals."""
    absent_packages = {one for one in map(package_of, methods) if one and find_spec(one) is None}
    asked = [one for one in methods if package_of(one) not in absent_packages]
    for name in sets:
        if absent(name):
            yield {"set": name, "note": absent(name)}
            continue
        found = in_fresh_process(runs, name, goals, asked, seeds)
        if "note" in found:
            yield {"set": name, **found}
            continue
        pairs = [(*key.split("\n"), of_seeds) for key, of_seeds in found.items()]
        for goal, method, of_seeds in pairs:
            line = {"set": name, "goal": goal, "method": method}
            yield line | ({"note": of_seeds} if isinstance(of_seeds, str) else summary(of_seeds))
        for method in asked:
            of_method = [(g, r) for g, m, r in pairs if m == method and not isinstance(r, str)]
            parts = {"all": [g for g, _ in of_method]}
            parts["fairness"] = [g for g in parts["all"] if GOALS[g].fairlearn]
            for part, kept in parts.items():
                together = [one for goal, r in of_method if goal in kept for one in r]
                if together and (part == "fairness" or method not in RIVALS):
                    line = {"set": name, "goal": f"mean of {part} goals", "method": method}
                    yield line | summary(together)
    for package in sorted(absent_packages):
        yield {"method": package, "note": f"not installed: {INSTALLED_BY[package]}"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.goals", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of one synthetic problem")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--goals", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(LINEAR))
    parser.add_argument("--means", action="store_true", help="over goals only")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    options = parser.parse_args()
    if options.quick:
        options.sets, options.seeds = ["few rows"], options.seeds[:1]
    lines = rows(options.sets, options.goals, options.methods, options.seeds)
    if options.means:
        lines = (row for row in lines if row.get("goal", "mean of").startswith("mean of"))
    print_table("Goals on new rows", COLUMNS, lines)


if __name__ == "__main__":
    main()
