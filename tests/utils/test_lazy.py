"""Tables of Dask and polars that are not loaded: refused early, with what takes them instead."""

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import (
    ConstrainedPolicy,
    ConstrainedRampClassifier,
    ConstrainedReduction,
    ConstrainedThreshold,
    GLMUCBPolicy,
    OffPolicyClassifier,
    RegressionSetSelector,
)
from skbandit.bandit import PolicyPipeline
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    off_policy_blocks,
    off_policy_value,
    rate_report,
    rate_report_blocks,
    replay,
)
from skbandit.inspection import save_report
from skbandit.rates import error_rate, outcome, positive_rate, recall
from skbandit.selection import PopularitySetSelector, SetSelectClassifier, assign, logged_costs
from skbandit.utils._validation import method_that_loads

pytestmark = pytest.mark.filterwarnings("ignore:Fewer than 20 rows")

LOG = make_bandit_log(60, n_arms=3, n_features=2, random_state=0)
X, Y = LOG.X, LOG.y[["action", "reward", "propensity"]]
LABEL = (X["x0"] > 0).astype(int).rename("label")
GOALS = error_rate(), recall() >= 0.1

CALLS = {
    "fit": (lambda X, y, label: GLMUCBPolicy().fit(X, y), "partial_fit learn"),
    "partial_fit": (lambda X, y, label: GLMUCBPolicy().partial_fit(X, y), "partial_fit learn"),
    "pipeline": (
        lambda X, y, label: PolicyPipeline([("policy", GLMUCBPolicy())]).fit(X, y),
        "partial_fit of a policy",
    ),
    "policy": (
        lambda X, y, label: ConstrainedPolicy(constraints=outcome("reward") >= 0).fit(X, y),
        "off_policy_blocks then evaluates",
    ),
    "classifier": (
        lambda X, y, label: OffPolicyClassifier(LogisticRegression()).fit(X, y),
        "off_policy_blocks then evaluates",
    ),
    "value": (lambda X, y, label: off_policy_value(GLMUCBPolicy(), X, y), "use off_policy_blocks"),
    "replay": (lambda X, y, label: replay(GLMUCBPolicy(), X, y), "use replay_blocks"),
    "costs": (lambda X, y, label: logged_costs(y, y, y), "fits in memory"),
    "threshold": (
        lambda X, y, label: ConstrainedThreshold(LogisticRegression(), *GOALS).fit(X, label),
        "rate_report_blocks then reports",
    ),
    "ramp": (
        lambda X, y, label: ConstrainedRampClassifier(*GOALS).fit(X, label),
        "rate_report_blocks then reports",
    ),
    "selector": (lambda X, y, label: RegressionSetSelector().fit(X, X), "one partition at a time"),
    "popularity": (lambda X, y, label: PopularitySetSelector().fit(X, X), "one partition"),
    "tree": (lambda X, y, label: SetSelectClassifier().fit(X, X), "one partition at a time"),
    "assignment": (lambda X, y, label: assign(X), "All rows must be known at once"),
    "reduction": (
        lambda X, y, label: ConstrainedReduction(LogisticRegression(), *GOALS).fit(X, label),
        "rate_report_blocks then reports",
    ),
}


@pytest.fixture(params=["dask", "polars"])
def lazy(request):
    """Lazy contexts, log and labels, and the method that loads them."""
    if request.param == "dask":
        dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
        return *(dd.from_pandas(part, npartitions=2) for part in (X, Y, LABEL)), "compute"
    pl = pytest.importorskip("polars", reason="polars is not installed")
    return *(pl.from_pandas(part).lazy() for part in (X, Y, LABEL.to_frame())), "collect"


@pytest.mark.parametrize("call", CALLS)
def test_lazy_tables_are_refused_with_what_takes_them(lazy, call):
    *tables, method = lazy
    function, cure = CALLS[call]
    with pytest.raises(TypeError, match=rf"is a lazy .* as by {method}\(\).*") as refused:
        function(*tables)
    assert cure in str(refused.value)


def test_rate_reports_take_frames_of_dask():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    frame = dd.from_pandas(X.assign(label=LABEL, half=["a", "b"] * 30), npartitions=2)
    expected = rate_report(LABEL, LABEL, recall(), by=pd.Series(["a", "b"] * 30, name="half"))
    loaded = rate_report(frame["label"], frame["label"], recall(), by="half", attributes=frame)
    pd.testing.assert_frame_equal(loaded, expected)
    blocks = rate_report_blocks(frame, recall(), y_true="label", y_pred="label", by="half")
    pd.testing.assert_frame_equal(blocks, expected)


def test_lazy_frames_of_polars_are_refused_as_blocks_and_attributes():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    lazy = pl.from_pandas(X.assign(label=LABEL)).lazy()
    with pytest.raises(TypeError, match=r"got LazyFrame: pass \[frame.collect\(\)\]"):
        rate_report_blocks(lazy, recall(), y_true="label", y_pred="label")
    with pytest.raises(TypeError, match=r"got LazyFrame: pass \[frame.collect\(\)\]"):
        off_policy_blocks("label", lazy)
    with pytest.raises(TypeError, match="attributes is a lazy LazyFrame of polars"):
        rate_report(LABEL, LABEL, recall(), by="x0", attributes=lazy)


def test_columns_of_these_names_are_no_methods():
    table = X.assign(compute=1, collect=2, to_delayed=3, divisions=4, label=LABEL)
    assert method_that_loads(table) is None
    report = rate_report_blocks([table], recall(), y_true="label", y_pred="label")
    assert report["value"].tolist() == [1.0]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of so few rows
def test_a_report_to_sign_loads_its_rows(lazy, tmp_path):
    contexts, log, label, _ = lazy
    goals = positive_rate(of=LOG.y["action"].iloc[0]) <= 0.9
    policy = ConstrainedPolicy(constraints=goals, random_state=0).fit(X[:40], Y[:40])
    pd.testing.assert_frame_equal(
        policy.constraint_report(contexts, log), policy.constraint_report(X, Y)
    )
    clf = ConstrainedThreshold(LogisticRegression(), *GOALS).fit(X[:40], LABEL[:40])
    cases = [(policy, Y, log), (clf, LABEL, label)]
    for model, known, given in cases:
        pages = []
        for rows in ((X, known), (contexts, given)):
            save_report(model, *rows, tmp_path / "page.html")
            page = (tmp_path / "page.html").read_text(encoding="utf-8")
            pages.append(page[page.index("<header>") : page.index("<h2>Model</h2>")])
        assert pages[0] == pages[1]
