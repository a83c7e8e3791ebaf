"""Tiers of tests, Hypothesis profiles, and what is left out without an optional package."""

import gc
import os
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from tests import tiers
from tests.last_digit import LastDigitChecker

if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the processors: one thread each
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)  # of libraries that a plugin has loaded before

collect_ignore = []
if find_spec("matplotlib") is None:
    collect_ignore += ["skbandit/inspection"]
if find_spec("skl2onnx") is None or find_spec("onnxruntime") is None:
    collect_ignore += ["skbandit/export"]
if find_spec("pyarrow") is None:
    collect_ignore += [
        "skbandit/datasets/_parquet.py",
        "skbandit/evaluation/_replay/_blocks.py",
    ]

ROOT = Path(__file__).parent
THEORY = ROOT / "tests" / "theory"
"""Theorems by simulation: all of them are thorough."""

LONG_PAGES = {
    ROOT / "docs" / page
    for page in (
        "case_studies/charity.md",
        "case_studies/lender.md",
        "case_studies/moderation.md",
        "getting_started/your_log.md",
        "how_to/cluster.md",
        "how_to/constraints.md",
        "how_to/cvxpy.md",
        "how_to/export.md",
        "how_to/selection.md",
        "how_to/after_the_first_day.md",
        "how_to/policies.md",
        "user_guide/any_learner.md",
        "user_guide/budgets.md",
        "user_guide/egregious.md",
        "user_guide/eighty_percent.md",
        "user_guide/several_classes.md",
        "user_guide/slates.md",
    )
}
"""Pages whose examples fit for seconds: thorough."""

MOST_CASES = 12
"""Of a test with more cases, the default tier runs these many, spread evenly."""

TIERS = {"default": 20, "thorough": 100, "ci": 100, "nightly": 200, "all": 200}
"""Examples per Hypothesis test in each tier, unless the test sets its own number."""


def pytest_addoption(parser):
    """Add --tier and --strict-warnings."""
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="default",
        help="default: tests without a mark; thorough: those so marked, and Hypothesis tests with "
        "more examples; ci: both; nightly: those so marked; all: every test. A test named by its "
        "node id runs in any tier.",
    )
    parser.addoption(
        "--strict-warnings",
        action="store_true",
        help="make errors of warnings, other packages' too; .ci/run does",
    )


def pytest_configure(config):
    """Load the Hypothesis profile of the tier, and make errors of warnings if asked."""
    if config.getoption("strict_warnings"):
        for line in ("error", *config.getini("filterwarnings")):  # later lines come first
            config.addinivalue_line("filterwarnings", line)
    tiers.leave_out = _is_default(config)
    if getattr(config.option, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        subprocess.run([sys.executable, "-m", "tests.warm"], cwd=ROOT, check=False)
    if find_spec("hypothesis") is None or config.getoption("hypothesis_profile", None):
        return
    from hypothesis import settings

    tier = config.getoption("tier")
    # Derandomized: a test that passes today passes tomorrow.
    settings.register_profile(tier, max_examples=TIERS[tier], derandomize=True, deadline=None)
    settings.load_profile(tier)


def _is_default(config):
    named = any("::" in argument for argument in config.args)
    return config.getoption("tier") == "default" and not named


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file to one worker: it fits and compiles what they share once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_report_header(config):
    """Name the tier."""
    return f"tier: {config.getoption('tier')} (of {', '.join(TIERS)})"


def pytest_make_parametrize_id(config, val):
    """Show settings as they are written, where pytest would number them."""
    if isinstance(val, (dict, list, tuple)) or _is_declared(val):
        shown = repr(val)
        if len(shown) <= 60 and "\n" not in shown and _is_plain(val):
            return shown
    return None


def _is_declared(value):
    """Rates, constraints and estimators: their repr is the call that makes them."""
    return type(value).__module__.startswith(("skbandit.", "sklearn."))


def _is_plain(value):
    """Whether each xdist worker has the same repr of a value."""
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, (str, int, float, type(None))):
        return True
    return _is_declared(value) and " at 0x" not in repr(value)


def pytest_ignore_collect(collection_path, config):
    """Do not import what the default tier leaves out as a whole, unless it is named."""
    named = any("theory" in argument for argument in config.args)
    if config.getoption("tier") == "default" and collection_path == THEORY and not named:
        return True
    return None


def pytest_pycollect_makeitem(collector, name, obj):
    """Do not make thousands of items that the default tier would deselect."""
    if not _is_default(collector.config) or not name.startswith("test"):
        return None
    marks = [*getattr(obj, "pytestmark", []), *collector.iter_markers()]
    return [] if any(mark.name in ("thorough", "nightly") for mark in marks) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep thousands of tests, which live to the end, from the garbage collector.

    Going through them again and again takes it half of the time of the collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    """Deselect what belongs to another tier, unless tests are named by node id."""
    checker = LastDigitChecker()
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.runner._checker = checker  # which pytest has no hook for
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker("realdata")
            item.add_marker("thorough")
        if THEORY in item.path.parents or item.path in LONG_PAGES:
            item.add_marker("thorough")
    _mark_surplus_cases(items)
    tier = config.getoption("tier")
    if tier == "all" or any("::" in argument for argument in config.args):
        return
    kept, deselected = [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        mark = "nightly" if "nightly" in marks else "thorough" if "thorough" in marks else "default"
        is_kept = mark == tier or (tier == "ci" and mark != "nightly")
        is_kept |= tier == "thorough" and mark == "default" and _is_property(item)
        (kept if is_kept else deselected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


def _mark_surplus_cases(items):
    cases = defaultdict(list)
    for item in items:
        if not {"thorough", "nightly"} & {mark.name for mark in item.iter_markers()}:
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_test in cases.values():
        for k, item in enumerate(of_test):
            if k * MOST_CASES % len(of_test) >= MOST_CASES:
                item.add_marker("thorough")


def _is_property(item):
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
