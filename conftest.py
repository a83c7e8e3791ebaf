"""Tiers of tests, Hypothesis profiles, and what is left out without an optional package."""

import gc
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import pytest
from threadpoolctl import threadpool_limits

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

TIERS = ("default", "thorough", "all")
MAX_EXAMPLES = {"default": 20, "thorough": 100, "all": 200}
"""Examples per Hypothesis test, unless the test sets its own number; all of them run at night."""


def pytest_addoption(parser):
    """Add --tier, --limit-cpu and --strict-warnings."""
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="default",
        help="default: tests not marked thorough; thorough: the others, and every Hypothesis test "
        "with more examples; all: both. A test named by its node id runs in any tier.",
    )
    parser.addoption(
        "--limit-cpu",
        type=float,
        metavar="SECONDS",
        help="fail tests of the default tier that take more CPU time, compilation aside",
    )
    parser.addoption(
        "--strict-warnings",
        action="store_true",
        help="make errors of warnings, other packages' too; .ci/run does",
    )


def pytest_configure(config):
    """Load the Hypothesis profile of the tier, and what --limit-cpu and --strict-warnings ask."""
    if config.getoption("strict_warnings"):
        for line in ("error", *config.getini("filterwarnings")):  # later lines come first
            config.addinivalue_line("filterwarnings", line)
    if config.getoption("limit_cpu") is not None:
        config.pluginmanager.register(Stopwatch(config.getoption("limit_cpu")))
    if find_spec("hypothesis") is None or config.getoption("hypothesis_profile", None):
        return
    from hypothesis import settings

    tier = config.getoption("tier")
    # Derandomized: a test that passes today passes tomorrow.
    settings.register_profile(
        tier, max_examples=MAX_EXAMPLES[tier], derandomize=True, deadline=None
    )
    settings.load_profile(tier)


class Stopwatch:
    """Fails slow tests. Nothing is counted that only the first test in a process pays for."""

    def __init__(self, limit):
        from numba.core import event

        for package in ("cvxpy", "matplotlib.pyplot", "dask.dataframe", "polars", "pyarrow"):
            if find_spec(package.partition(".")[0]) is not None:
                import_module(package)
        self.limit, self.compiling = limit, 0.0
        watch, depth = self, 0

        class Compilation(event.Listener):
            def on_start(self, _):
                nonlocal depth
                watch.compiling -= process_time() * (depth == 0)
                depth += 1

            def on_end(self, _):
                nonlocal depth
                depth -= 1
                watch.compiling += process_time() * (depth == 0)

        event.register("numba:compile", Compilation())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Measure the call of a test, its fixtures left out."""
        before = process_time() - self.compiling
        result = yield
        seconds = process_time() - self.compiling - before
        if seconds > self.limit and item.get_closest_marker("thorough") is None:
            pytest.fail(
                f"took {seconds:.1f} s of CPU time, more than --limit-cpu={self.limit:g}: make it "
                "cheaper, or mark it thorough, see CONTRIBUTING.md",
                pytrace=False,
            )
        return result


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
    tier = config.getoption("tier")
    if tier == "all" or any("::" in argument for argument in config.args):
        return
    kept, deselected = [], []
    for item in items:
        in_thorough = item.get_closest_marker("thorough") is not None
        if tier == "thorough":
            is_kept = in_thorough or _is_property(item)
        else:
            is_kept = not in_thorough
        (kept if is_kept else deselected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


def _is_property(item):
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
