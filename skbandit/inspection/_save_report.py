"""save_report: what a model decides, what it costs and for whom, as one page to sign."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from skbandit.inspection import _page, _page_sections, _page_values
from skbandit.inspection._case import Case
from skbandit.inspection._page_sections import Section
from skbandit.utils._exact import exact_table
from skbandit.utils._folds import hashes_of_contexts, split_pipeline

if TYPE_CHECKING:
    from os import PathLike

PACKAGES = ("skbandit", "scikit-learn", "numpy", "scipy", "pandas")
"""Packages whose versions are named."""

LONGEST, LONGEST_TABLE = 600, 3000
"""Letters of a setting and of a table that are shown."""

RULE = ("confidence_level_", "feasible_", "threshold_", "thresholds_", "costs_", "prices_")
"""Fitted attributes that are the rule, and how sure it is."""


def save_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str],
    *,
    attributes: Any = None,
    by: str | Sequence[str] | None = None,
    title: str | None = None,
    today: Any = None,
    groups: Any = None,
) -> None:
    """Save a report on a fitted model as one HTML file, to read, print, sign and file.

    It says which goals are met, violated or undecided, what they cost, the rates of groups, which
    decisions differ from those without constraints, and which model and data it is about. The file
    needs no network and runs no scripts. It fits a phone and prints on A4.

    Parameters
    ----------
    model : classifier with constraints, policy or selector, Pipeline that ends with one, or search
        Fitted: `ConstrainedThreshold`, `ConstrainedReduction`, `ConstrainedRampClassifier`;
        `ConstrainedPolicy`, `GLMUCBPolicy`, `OffPolicyClassifier` and other policies;
        `RegressionSetSelector`, `SetSelectClassifier`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows that had no part in the fit, as for the `predict` of `model`.
    y : array-like or DataFrame
        Labels for a classifier, a log for a policy, a table of costs for a selector.
    path : str or path-like
        File to write, such as "report.html". An existing file is replaced.
    attributes : DataFrame or dict of arrays, default=None
        Columns that goals or `by` name, unless X has them.
    by : str or list of str, default=None
        Columns whose values, or combinations of values, are the groups that rates are reported of.
    title : str, default=None
        Heading. None names the model.
    today : model, policy or array-like, default=None
        The rule that the model would replace: a model with `predict` or, of policies, `select`, or
        one decision per row of X, as `replay` takes it; of policies also probabilities, as in
        `off_policy_value`. None compares with no constraints, with the rule that made the log, or
        with the ads that are cheapest on average.
    groups : array-like of shape (n_samples,), default=None
        Rows with the same value are dependent, such as those of one person: intervals, and so
        whether goals are met, count them as such. It has nothing to do with `by`.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the cost of an ad that a selector chooses is not known, or that of a decision of today's
        rule, `y` is a log of slates, or `today` has not one decision per row.

    See Also
    --------
    skbandit.evaluation.to_model_card : The goals as Markdown.
    RateReportDisplay : Rates as a figure.

    Notes
    -----
    Whether goals are met is measured on X and y; outcomes of a policy are doubly robust estimates.
    What goals cost is known from the fit: see `objective_report_` and the column `price` of
    `constraint_report_`.

    The value of a policy is that of its objective. Where that does not count what a constraint
    bounds, such as ``cost({...}) <= 2``, the page also has the value less that, for both rules.

    The number of the report is the start of a SHA-256 hash of its contents, and stands on each
    printed page. An existing file is replaced only once the new one is complete.

    The fingerprint of the data is a SHA-256 hash of values and column names, and does not depend on
    the index.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedThreshold
    >>> from skbandit.inspection import save_report
    >>> from skbandit.rates import recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.9)
    >>> clf = clf.fit(scale(X)[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     save_report(clf, scale(X)[1::2], y[1::2], path, title="Tumors")
    ...     "The goal is met." in path.read_text(encoding="utf-8")
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} must be the name of a file.")
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"path={str(path)!r} is no file in a folder that exists.")
    case = Case.read(model, X, y, attributes, by, groups, today)
    sections = [section for panel in PANELS for section in panel(case)]
    text = _page.page(title or f"Report on {type(case.fitted).__name__}", sections)
    _replace_file(path, text.encode("utf-8", "backslashreplace"))


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file; one that is there stays until the new one is complete."""
    if path.exists() and not path.is_file():  # such as a pipe
        path.write_bytes(content)
        return
    path = path.resolve()
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _model(case: Case) -> Iterable[Section]:
    """Show class, parameters, level and versions."""
    model, fitted = case.model, case.fitted
    steps = getattr(model, "best_estimator_", model)
    transformers, _ = split_pipeline(steps)
    names = [] if transformers is None else [type(step).__name__ for _, step in transformers.steps]
    settings: dict[str, Any] = {"model": " → ".join([*names, type(fitted).__name__])}
    if hasattr(model, "best_params_"):
        settings["chosen by search"] = model.best_params_
    settings |= fitted.get_params(deep=False)
    if isinstance(settings.get("estimator"), Pipeline):
        settings["estimator"] = " → ".join(str(step) for _, step in settings["estimator"].steps)
    for name in RULE:
        if hasattr(fitted, name):
            settings[name] = getattr(fitted, name)
    settings |= {name: version(name) for name in PACKAGES}
    settings |= {"Python": platform.python_version(), "created": datetime.date.today().isoformat()}
    rows = [(name, _setting(value)) for name, value in settings.items()]
    yield "Model", _page.plain_table(("", ""), rows, kind="facts")


def _setting(value: Any) -> str:
    """Return a setting or fitted value as text, without addresses in memory."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.round(4).to_string()
        return value if len(value) < LONGEST_TABLE else shorten(value, LONGEST)
    text = value if isinstance(value, str) else repr(value)
    return shorten(re.sub(r" object at 0x[0-9a-f]+", "", text), LONGEST)


def _data(case: Case) -> Iterable[Section]:
    """Show fingerprints of the data, and how many rows have no label."""
    attributes = None if case.attributes is None else case.columns.attributes
    data = {"X": case.X, "y": case.y, "attributes": attributes}
    fingerprints = {name: _fingerprint(rows) for name, rows in data.items() if rows is not None}
    if np.ndim(case.y) == 1 and (missing := int(pd.isna(np.asarray(case.y)).sum())):
        fingerprints["y"] += f"; {missing:,} rows without a label count in no rate that needs one"
    yield "Data", _page.plain_table(("", ""), [*fingerprints.items()], kind="facts")


def _fingerprint(data: Any) -> str:
    """Return rows, columns, and a hash of values and names."""
    table = data if issparse(data) else pd.DataFrame(exact_table(data))
    names = repr([str(name) for name in getattr(table, "columns", [])]).encode()
    hasher = hashlib.sha256(names + hashes_of_contexts(table).tobytes())
    n_rows, n_columns = table.shape
    return f"{n_rows:,} rows, {n_columns:,} columns, SHA-256 {hasher.hexdigest()}"


PANELS: tuple[Callable[[Case], Iterable[Section]], ...] = (
    _page_sections.decisions,
    _page_sections.goals,
    _page_sections.costs,
    _page_values.values,
    _page_values.mean_costs,
    _page_sections.rates_of_groups,
    _page_sections.classes,
    _page_sections.goals_of_today,
    _page_sections.changes,
    _model,
    _data,
)
"""Sections from the top down; those without a heading are the head of the page."""
