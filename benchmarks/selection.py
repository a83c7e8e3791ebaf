"""Choosing m of n ads: what it takes for 10 of 10,000, and what 5 are worth that others choose.

python -m benchmarks.selection [--quick] [--only TABLE ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor

from benchmarks import _selection_rivals as choices
from benchmarks import _set_values as sets
from benchmarks._measure import in_fresh_process, measure
from benchmarks._selection_rivals import ALL, DATA, GONE, RIVALS, UNIT
from benchmarks._table import COSTS, Column, costs, print_table
from skbandit import RegressionSetSelector, SetSelectClassifier

M = 10

Task = tuple[Callable[[], Any], Callable[[], Any] | None]
"""What is measured, and its unit."""


def _product(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return X @ weights.T


def _partition(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What one would write: all costs, and the ten lowest in order."""
    costs = X @ weights.T
    found = np.argpartition(costs, M, axis=1)[:, :M]
    order = np.take_along_axis(costs, found, axis=1).argsort(axis=1)
    return np.take_along_axis(found, order, axis=1)


def _linear(n_ads: int, d: int, n_rows: int, dtype: type) -> tuple[np.ndarray, Any]:
    """Rows, and a selector with a coefficient for each of their features and each ad."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, d)).astype(dtype)
    few = X[:50]
    return X, RegressionSetSelector(n_select=M).fit(few, rng.normal(size=(len(few), n_ads)))


def predict(n_ads: int, d: int, n_rows: int, dtype: type, kind: str) -> Task:
    """Predictions for many rows; the unit is the product of rows and coefficients."""
    X, selector = _linear(n_ads, d, n_rows, dtype)
    unit = partial(_product, X, selector.coef_)
    if kind == "product + argpartition":
        return partial(_partition, X, selector.coef_), unit
    available = np.random.default_rng(1).random((n_rows, n_ads)) < 0.7
    return partial(selector.predict, X, available=available if kind == "30% gone" else None), unit


PREDICTIONS = ("predict", "30% gone", "product + argpartition")


REQUESTS = 100
"""Single rows for which ads are chosen, one after the other, in one run of a task."""


def requests(d: int, gone: float) -> Task:
    """Choices for single rows; the unit is what one would write with numpy."""
    X, selector = _linear(10_000, d, REQUESTS, np.float64)
    weights, intercept = np.ascontiguousarray(selector.coef_.T), selector.intercept_
    masks = np.random.default_rng(1).random((REQUESTS, 10_000)) >= gone

    def ours() -> None:
        for i in range(REQUESTS):
            selector.predict(X[[i]], available=masks[[i]] if gone else None)

    def plain() -> None:
        for i in range(REQUESTS):
            costs = X[i] @ weights + intercept
            if gone:
                costs[~masks[i]] = np.inf
            found = np.argpartition(costs, M)[:M]
            found[costs[found].argsort()]

    return ours, plain


def _rows(n_rows: float, d: float, density: float = 1.0) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(int(n_rows), max(1, int(d))))
    return X if density == 1.0 else sp.csr_array(X * (rng.random(X.shape) < density))


def _fit_dense(scale: float) -> Task:
    X, y = _rows(2_000 * scale, 100), _rows(2_000 * scale, 100 * scale)
    return partial(RegressionSetSelector().fit, X, y), partial(Ridge().fit, X, y)


def _fit_apart(scale: float) -> Task:
    X, y = _rows(2_000 * scale, 100), _rows(2_000 * scale, 100 * scale)
    return partial(MultiOutputRegressor(Ridge()).fit, X, y), partial(Ridge().fit, X, y)


def _fit_holes(scale: float) -> Task:
    X, y = _rows(2_000 * scale, 100), _rows(2_000 * scale, 100 * scale)
    holes = np.where(np.random.default_rng(1).random(y.shape) < 0.1, np.nan, y)
    return partial(RegressionSetSelector().fit, X, holes), partial(Ridge().fit, X, y)


def _fit_sparse_rows(scale: float) -> Task:
    X, y = _rows(2_000 * scale, 500, 0.05), _rows(2_000 * scale, 10 * scale)
    return partial(RegressionSetSelector().fit, X, y), partial(Ridge().fit, X, y)


def _clicks(n_rows: float, n_ads: int) -> sp.csr_array:
    """Ten clicks per row, generated without a dense matrix."""
    columns = np.random.default_rng(2).integers(0, n_ads, 10 * int(n_rows))
    ends = np.arange(0, len(columns) + 1, 10)
    return sp.csr_array((np.full(len(columns), -1.0), columns, ends), shape=(len(ends) - 1, n_ads))


def _fit_sparse_costs(scale: float, d: int = 100, density: float = 1.0) -> Task:
    X, y = _rows(10_000 * scale, d, density), _clicks(10_000 * scale, 10_000)
    return partial(RegressionSetSelector().fit, X, y), None


def _fit_bilinear(scale: float) -> Task:
    X, y = _rows(10_000 * scale, 100), _clicks(10_000 * scale, 10_000)
    Z = np.random.default_rng(3).normal(size=(10_000, 20))
    return partial(RegressionSetSelector().fit, X, y, ad_features=Z), None


def _fit_bilinear_holes(scale: float) -> Task:
    X, y = _rows(2_000 * scale, 50), _rows(2_000 * scale, 20 * scale)
    holes = np.where(np.random.default_rng(1).random(y.shape) < 0.5, np.nan, y)
    Z = np.random.default_rng(3).normal(size=(y.shape[1], 10))
    return partial(RegressionSetSelector().fit, X, holes, ad_features=Z), partial(Ridge().fit, X, y)


FITS: dict[str, Callable[[float], Task]] = {
    "100 ads, dense rows": _fit_dense,
    "the same, MultiOutputRegressor": _fit_apart,
    "the same, 10% unobserved": _fit_holes,
    "sparse rows": _fit_sparse_rows,
    "10,000 ads, sparse costs": _fit_sparse_costs,
    "the same, sparse rows": partial(_fit_sparse_costs, d=1000, density=0.02),
    "the same, 20 ad features": _fit_bilinear,
    "ad features, half unobserved": _fit_bilinear_holes,
}

ROUNDS: dict[str, tuple[int, dict[str, str]]] = {
    "1,000 ads, masked, over Ridge": (1000, {"reduction": "regression"}),
    "1,000 ads, published, over Ridge": (1000, {"reduction": "regression", "method": "published"}),
    "20 ads, masked filter tree": (20, {}),
}


def rounds(name: str, scale: float) -> Task:
    """Training for sets of ten; the unit is training for one ad."""
    n_ads, options = ROUNDS[name]
    X, y = _rows(5_000 * scale, 100), _rows(5_000 * scale, n_ads)
    ten, one = (SetSelectClassifier(n_select=m, random_state=0, **options) for m in (M, 1))
    return partial(ten.fit, X, y), partial(one.fit, X, y)


_SECONDS, _WALL, _, *_REST = COSTS
_SHOWN = (_SECONDS, _WALL, Column("x unit"), *_REST)
PREDICT_COLUMNS = (
    Column("task", 22),
    Column("features", 8, "d"),
    Column("dtype", 7),
    Column("us/row", 7, ".1f"),
    *_SHOWN,
    Column("aim", 4, ".1f"),
)
REQUEST_COLUMNS = (
    Column("features", 8, "d"),
    Column("gone", 4, ".0%"),
    Column("us/row", 7, ".1f"),
    *_SHOWN,
    Column("aim", 4, ".1f"),
)
FIT_COLUMNS = (Column("costs of", 31), *_SHOWN)
ROUND_COLUMNS = (Column("ten rounds", 34), *_SHOWN, Column("aim", 4, ".1f"))
CHOICE_COLUMNS = (
    Column("method", 41),
    Column("gone", 4, ".0%"),
    Column("share", 5, ".3f"),
    Column("sd", 5, ".3f"),
    Column("fit s", 6, ".3f"),
    Column("x plain", 7),
    Column("choose s", 8, ".4f"),
)

_INSTALLED = ("skbandit", "scikit-learn", "numpy", "numba", *(r.package for r in RIVALS.values()))
PACKAGES = tuple(dict.fromkeys(_INSTALLED))


def predict_row(kind: str, d: int, dtype: str, quick: bool) -> dict[str, Any]:
    """One way to choose, compared with the matrix product."""
    n_rows = 200 if quick else 2_000
    task, unit = predict(10_000, d, n_rows, np.dtype(dtype).type, kind)
    task()  # compiles
    cost, _ = measure(task, unit, rounds=2 if quick else 9)
    return costs(cost) | {"x unit": cost.least, "us/row": 1e6 * cost.cpu / n_rows}


def request_row(d: int, gone: float, quick: bool) -> dict[str, Any]:
    """Choices for single rows, compared with numpy's."""
    task, unit = requests(d, gone)
    task()  # compiles
    cost, _ = measure(task, unit, rounds=3 if quick else 20)
    return costs(cost) | {"x unit": cost.least, "us/row": 1e6 * cost.cpu / REQUESTS}


def fit_row(name: str, quick: bool) -> dict[str, Any]:
    """One kind of costs, compared with Ridge on dense, complete ones of that size."""
    FITS[name](0.02)[0]()
    task, unit = FITS[name](1 if quick else 10)
    cost, _ = measure(task, unit, rounds=2 if quick else 5)
    return costs(cost) | {"x unit": cost.least}


def round_row(name: str, quick: bool) -> dict[str, Any]:
    """Ten rounds of one kind, compared with one round."""
    rounds(name, 0.02)[0]()
    task, unit = rounds(name, 0.1 if quick else 1)
    cost, _ = measure(task, unit, rounds=2 if quick else 5)
    return costs(cost) | {"x unit": cost.least}


def predict_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every way, for rows of some lengths."""
    for d in (50, 100, 300):
        for dtype in ("float64", "float32"):
            for kind in PREDICTIONS:
                key = {"task": kind, "features": d, "dtype": dtype}
                aim = {"aim": 1.3} if kind == "predict" else {}
                yield key | aim | in_fresh_process(predict_row, kind, d, dtype, quick)


def request_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Rows of some lengths, all ads there or 30% gone."""
    for d in (50, 300):
        for gone in (0.0, 0.3):
            key = {"features": d, "gone": gone, "aim": 1.3}
            yield key | in_fresh_process(request_row, d, gone, quick)


def fit_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every kind of costs."""
    for name in FITS:
        yield {"costs of": name} | in_fresh_process(fit_row, name, quick)


def round_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every kind of rounds."""
    for name in ROUNDS:
        aim = {"aim": 3.0} if "masked, over" in name else {}
        yield {"ten rounds": name} | aim | in_fresh_process(round_row, name, quick)


def choice_row(name: str, data: str, gone: float, quick: bool) -> dict[str, Any]:
    """One method over several splits; its fits in turn with those of a plain regressor."""
    rival, plain = ALL[name], RIVALS[UNIT]
    sample = DATA[data]().without(gone)
    if quick:
        sample = sample.rows(slice(1_000))
    shares, fits, choosing = [], [], []
    for seed in range(2 if quick else 5):
        train, test = sample.split(seed)
        fit = partial(rival.fit, rival.read(train))
        cost, model = measure(fit, partial(plain.fit, plain.read(train)), rounds=1)
        fits.append(cost)
        cost, chosen = measure(partial(rival.choose, model, rival.read(test)), rounds=1)
        choosing.append(cost)
        shares.append(test.share(chosen))
    least = min(cost.cpu for cost in fits)  # not of the first split: that compiles and imports
    return {
        "share": np.mean(shares),
        "sd": np.std(shares, ddof=1),
        "fit s": least,
        "x plain": least / min(cost.cpu / cost.least for cost in fits),
        "choose s": min(cost.cpu for cost in choosing),
        "note": fits[0].note,
    }


def choice_rows(data: str, quick: bool) -> Iterator[dict[str, Any]]:
    """Every method, with all ads available and with some of them gone."""
    for gone in GONE:
        for name, rival in ALL.items():
            key = {"method": name, "gone": gone}
            if rival.cure:
                yield key | {"note": rival.cure}
            else:
                yield key | in_fresh_process(choice_row, name, data, gone, quick)


SEEDS = (200, 201, 202, 203)
"""Splits for `value_rows`."""

REFERENCE = 'RegressionSetSelector("stack")'

VALUE_COLUMNS = (
    Column("method", 31),
    *(Column(f"m={m}", 5, ".3f") for m in sets.SIZES),
    *(Column(f"m={m}, 30%", 9, ".3f") for m in sets.SIZES),
    Column("- stack", 7, "+.3f"),
    Column("se", 5, ".3f"),
)


def value_row(method: str, data: str, quick: bool) -> dict[str, Any]:
    """Shares of one method on every split."""
    seeds = SEEDS[:1] if quick else SEEDS
    few = [m <= sets.read(data)[1].shape[1] // 2 for m in sets.SIZES]
    return {"shares": np.array([sets.values(data, method, seed) for seed in seeds]), "few": few}


def value_rows(data: str, quick: bool) -> Iterator[dict[str, Any]]:
    """Every method; the standard error is over splits, which overlap.

    Differences to the stack are means over sets of at most half of the ads: with most of them, and
    some gone, the best sets of oes97 are worth next to nothing, and shares of it vary wildly.
    """
    found = {
        method: {"note": sets.cure(method)}
        if sets.cure(method)
        else in_fresh_process(value_row, method, data, quick)
        for method in (REFERENCE, *(name for name in sets.METHODS if name != REFERENCE))
    }
    for method in sets.METHODS:
        row: dict[str, Any] = {"method": method} | found[method]
        if "shares" in row and "shares" in found[REFERENCE]:
            every, gone = row["shares"].mean(axis=0)
            for m, all_there, some_gone in zip(sets.SIZES, every, gone, strict=True):
                row |= {f"m={m}": all_there, f"m={m}, 30%": some_gone}
            behind = (row["shares"] - found[REFERENCE]["shares"])[:, :, row["few"]]
            behind = behind.mean(axis=(1, 2))
            row["- stack"] = behind.mean()
            row["se"] = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else np.nan
        yield row


@dataclass(frozen=True)
class Table:
    """A title, the columns, and the rows, many or few."""

    title: str
    columns: tuple[Column, ...]
    rows: Callable[[bool], Iterator[dict[str, Any]]]


_CHOICES = f"Choosing {choices.M} ads, compared with MultiOutputRegressor(Ridge())"
_VALUES = "Value of sets of m, all ads available or 30% gone, relative to the best ones"

TABLES = {
    "predict": Table(
        f"Choosing {M} of 10,000 ads in units of the matrix product", PREDICT_COLUMNS, predict_rows
    ),
    "request": Table(
        f"Choosing {M} of 10,000 ads for single rows, in units of numpy's product and argpartition",
        REQUEST_COLUMNS,
        request_rows,
    ),
    "fit": Table(
        "Learning costs, in units of Ridge().fit on the same rows and as many complete costs",
        FIT_COLUMNS,
        fit_rows,
    ),
    "rounds": Table(f"Training {M} rounds, in units of one round", ROUND_COLUMNS, round_rows),
    "yeast": Table(f"{_CHOICES}: yeast", CHOICE_COLUMNS, partial(choice_rows, "yeast")),
    "synthetic": Table(
        f"{_CHOICES}: synthetic data", CHOICE_COLUMNS, partial(choice_rows, "synthetic")
    ),
    "oes97": Table(f"{_VALUES}: oes97", VALUE_COLUMNS, partial(value_rows, "oes97")),
    "cal500": Table(f"{_VALUES}: cal500", VALUE_COLUMNS, partial(value_rows, "cal500")),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--only", nargs="+", choices=TABLES, metavar="TABLE", default=list(TABLES))
    options = parser.parse_args()
    for name in options.only:
        table = TABLES[name]
        print_table(table.title, table.columns, table.rows(options.quick), PACKAGES)


if __name__ == "__main__":
    main()
