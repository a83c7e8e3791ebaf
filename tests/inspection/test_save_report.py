"""save_report: what the page says is what the model does, for every kind of model."""

import html
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy, RegressionSetSelector
from skbandit.bandit import ConstrainedPolicy, OffPolicyClassifier
from skbandit.constrained import (
    ConstrainedReduction,
    ConstrainedThreshold,
    RampClassifier,
    constraint_report,
)
from skbandit.evaluation import off_policy_value, rate_report
from skbandit.inspection import _save_report, save_report
from skbandit.inspection._report_lines import number_text
from skbandit.rates import (
    confusion,
    cost,
    difference,
    each,
    error_rate,
    outcome,
    positive_rate,
    recall,
)
from skbandit.selection import SetSelectClassifier
from tests.worlds import refuses

RNG = np.random.default_rng(0)
N = 800
X = pd.DataFrame(RNG.normal(size=(2 * N, 2)), columns=["age", "visits"])
Y = (X["age"] + RNG.normal(size=2 * N) > 0.5).astype(int).to_numpy()
PEOPLE = pd.DataFrame({"sex": np.where(RNG.random(2 * N) < 0.4, "F", "M")})
TRAIN, NEW = slice(0, N), slice(N, 2 * N)
GOALS = [recall() >= 0.9, difference(positive_rate, by="sex") <= 0.2]
ARMS = np.array(["call", "letter", "none"])
ACTION = RNG.integers(0, 3, 2 * N)
GAIN = np.column_stack([X["age"], 0.3 * X["visits"], np.zeros(2 * N)])
LOG = pd.DataFrame(
    {
        "action": ARMS[ACTION],
        "reward": GAIN[np.arange(2 * N), ACTION] + 0.3 * RNG.normal(size=2 * N),
        "discount": 0.2 * (ACTION == 0) * (RNG.random(2 * N) < 0.5),
        "propensity": 1 / 3,
    }
)
COSTS = pd.DataFrame(-GAIN + 0.1 * RNG.normal(size=GAIN.shape), columns=ARMS)


def saved(folder, model, X, y, **options):
    """The page, and its text with one space for each run of white space."""
    path = folder / "report.html"
    save_report(model, X, y, path, **options)
    page = path.read_text(encoding="utf-8")
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)))
    return page, text


def number(text, section, label):
    """The number after a label of a section, to three decimals."""
    text = text.split(f" {section} ", 1)[1].split(f"{label} ", 1)[1]
    return pytest.approx(float(text.split(" ", 1)[0]), abs=6e-4)


def figures(row):
    return f"{row['value']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]"


@pytest.fixture(scope="module")
def threshold():
    clf = ConstrainedThreshold(LogisticRegression(), constraints=GOALS)
    return clf.fit(X[TRAIN], Y[TRAIN], attributes=PEOPLE[TRAIN])


@pytest.fixture(scope="module")
def policy():
    goals = [
        cost({"none": 0, "letter": 0.5, "call": "minutes"}) <= 1,
        positive_rate(of="call") <= 0.2,
        outcome("discount") <= 0.05,
    ]
    minutes = pd.DataFrame({"minutes": 3.0}, index=X.index)
    fitted = ConstrainedPolicy(None, None, goals, random_state=0)
    return fitted.fit(X[TRAIN], LOG[TRAIN], attributes=minutes[TRAIN])


@pytest.mark.thorough
def test_goals_prices_groups_and_changes_of_a_classifier(threshold, tmp_path):
    rows, options = (X[NEW], Y[NEW]), {"attributes": PEOPLE[NEW]}
    page, text = saved(tmp_path, threshold, *rows, by="sex", title="Offers", **options)
    assert "<title>Offers</title>" in page and "<h1>Offers</h1>" in page
    report = constraint_report(threshold, *rows, **options)
    verdicts = report["verdict"].tolist()
    worst = report[1:].sort_values("slack").iloc[0]
    for row in (report.iloc[0], worst):
        assert f"{figures(row)} bound {row['bound']:g} {row['verdict']}" in text
    assert text.count("worst: ") == 1
    assert "Of 2 goals, " in text or "All 2 goals are met." in text
    assert ("Violated: " in text) == ("violated" in verdicts)
    one = threshold.objective_report_.iloc[0]
    assert f"error_rate(), is {one['cross_fitted']:.3f} [{one['ci_low']:.3f}," in text
    gap = abs(one["cross_fitted"] - one["best_unconstrained"])
    assert f"{number_text(one['unconstrained'])} by the classifier at its usual" in text
    assert f"{number_text(one['best_unconstrained'])} by the best rule without constr" in text
    prices = threshold.constraint_report_["price"]
    # the plain model is not the best one without constraints
    told = prices.max() <= gap
    assert (f"all constraints together cost {number_text(gap)}" in text) == told
    assert f"recall() >= 0.9 0.9 {prices[0]:.3g} " in text
    decided = threshold.predict(X[NEW])
    by_sex = rate_report(Y[NEW], decided, error_rate(), by="sex", **options)
    for row in by_sex.to_dict("records"):
        assert f"{figures(row)} rows {row['n_rows']}" in text
    changed = decided != threshold.estimator_.predict(X[NEW])
    assert 0 < changed.sum() < len(changed)
    assert f"{changed.sum()} of 800 rows ({changed.mean():.1%}) are decided differently" in text
    for name in ("F", "M"):
        assert f"{changed[PEOPLE['sex'][NEW] == name].mean():.3f} [" in text
    assert f"0 1 {changed.sum()}" in text


def test_a_page_needs_nothing_from_elsewhere(threshold, tmp_path):
    page, text = saved(tmp_path, threshold, X[NEW], Y[NEW], attributes=PEOPLE[NEW], by="sex")
    assert '<th scope="row">1</th>' in page and '<th scope="col" class="number">1</th>' in page
    for wrong in ("http", "src=", "href", "url(", "@import", "<script", "<link", "nan"):
        assert wrong not in page
    assert text.count("SHA-256") == 3 and "Name Date Signature" in text
    for package in ("skbandit", "scikit-learn", "numpy", "pandas", "Python"):
        assert re.search(rf"{package} \d+\.\d+", text)
    assert "ConstrainedThreshold" in text and "confidence_level_" in text


@pytest.mark.thorough
def test_a_pipeline_and_a_search_are_reported_as_their_classifier(threshold, tmp_path):
    data = {"attributes": PEOPLE[NEW], "by": "sex"}
    model = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.8)
    pipeline = make_pipeline(StandardScaler(), model).fit(X[TRAIN], Y[TRAIN])
    grid = {"constrainedthreshold__estimator__C": [0.1]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X[TRAIN], Y[TRAIN])
    for one, inner in ((pipeline, pipeline), (search, search.best_estimator_)):
        _, text = saved(tmp_path, one, X[NEW], Y[NEW], **data)
        expected = constraint_report(inner, X[NEW], Y[NEW])
        assert figures(expected.iloc[0]) in text
        assert "StandardScaler → ConstrainedThreshold" in text
        decided = inner.predict(X[NEW])
        changed = decided != inner[-1].estimator_.predict(inner[:-1].transform(X[NEW]))
        assert f"{changed.sum()} of 800 rows" in text
    assert "chosen by search {'constrainedthreshold__estimator__C': 0.1}" in text


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            ConstrainedRampClassifier(constraints=recall() >= 0.8), marks=pytest.mark.thorough
        ),
        ConstrainedReduction(LogisticRegression(), constraints=recall() >= 0.8, cv=2),
        ConstrainedThreshold(
            LogisticRegression().fit(X[TRAIN], Y[TRAIN]), constraints=recall() >= 0.8, cv="prefit"
        ),
    ],
)
def test_all_constrained_classifiers(model, tmp_path):
    model.fit(X[TRAIN], Y[TRAIN])
    _, text = saved(tmp_path, model, X[NEW], Y[NEW])
    row = constraint_report(model, X[NEW], Y[NEW]).iloc[0]
    assert f"{figures(row)} bound 0.8 {row['verdict']}" in text
    assert "are decided differently than without constraints" in text
    assert "Rates by group" not in text


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Fewer than 20 rows")
def test_several_classes_with_review(tmp_path):
    score = X["age"] + 0.7 * np.random.default_rng(1).normal(size=2 * N)
    y = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.5])]
    goals = [positive_rate(of="review") <= 0.3, confusion("c", "a") <= 0.1]
    objective = error_rate(without="review")
    settings = {"constraints": goals, "other_decisions": ["review"], "cv": 2}
    clf = ConstrainedThreshold(LogisticRegression(), objective, **settings)
    clf.fit(X[TRAIN], y[TRAIN])
    _, text = saved(tmp_path, clf, X[NEW], y[NEW], attributes=PEOPLE[NEW], by="sex")
    decided = clf.predict(X[NEW])
    share = (decided == "review").mean()
    assert f"positive_rate(of='review') <= 0.3 {share:.3f} [" in text
    changed = decided != clf.estimator_.predict(X[NEW])
    assert f"{changed.sum()} of 800 rows" in text
    assert "Of 2 goals" in text or "All 2 goals" in text
    counts = pd.crosstab(y[NEW], decided)[["a", "b", "c", "review"]]
    for label, row in counts.iterrows():
        cells = [f"{n} ({n / row.sum():.1%})" for n in row]
        assert f" {label} {' '.join(cells)} {row.sum()} " in text


def test_goals_and_value_of_a_policy_under_a_budget(policy, tmp_path):
    minutes = {"minutes": np.full(N, 3.0)}
    people = PEOPLE[NEW].reset_index(drop=True).assign(**minutes)
    people.index = X[NEW].index
    _, text = saved(tmp_path, policy, X[NEW], LOG[NEW], attributes=people, by="sex")
    decided = policy.predict(X[NEW], attributes=people)
    spent = np.mean(np.select([decided == "call", decided == "letter"], [3.0, 0.5], 0.0))
    assert spent == number(text, "Goals", "'minutes'}) <= 1")
    assert np.mean(decided == "call") == number(text, "Goals", "positive_rate(of='call') <= 0.2")
    report = constraint_report(policy, X[NEW], LOG[NEW], attributes=people)
    assert report["value"][2] == number(text, "Goals", "outcome('discount') <= 0.05")
    value = off_policy_value(decided, None, LOG[NEW])
    today = LOG["reward"][NEW].mean()
    assert f"this policy {value.mean_reward:.3f} [" in text
    assert f"today's rule {today:.3f} [" in text
    assert f"difference {value.mean_reward - today:.3f} [" in text
    differs = (decided != LOG["action"][NEW]).sum()
    assert f"{differs} of 800 rows" in text and "differently than by today's rule" in text
    price = policy.constraint_report_["price"][0]
    assert f"'minutes'}}) <= 1 1 {price:.3g} " in text


@pytest.mark.thorough
def test_a_table_of_costs_and_several_actions(tmp_path):
    goals = positive_rate(of="call") <= 0.5
    fitted = ConstrainedPolicy(None, None, goals, n_select=2).fit(X[TRAIN], COSTS[TRAIN])
    _, text = saved(tmp_path, fitted, X[NEW], COSTS[NEW])
    decided = fitted.predict(X[NEW])
    share = (decided == "call").any(axis=1).mean()
    assert share == number(text, "Goals", "positive_rate(of='call') <= 0.5")
    chosen = [COSTS[NEW].iloc[k][list(row)].sum() for k, row in enumerate(decided)]
    assert f"this selector {np.mean(chosen):.3f} [" in text


def test_a_classifier_without_a_plain_one(tmp_path):
    clf = RampClassifier(constraints=recall() >= 0.8, solver="newton").fit(X[TRAIN], Y[TRAIN])
    _, text = saved(tmp_path, clf, X[NEW], Y[NEW])
    value = clf.objective_report_["value"][0]
    assert f"error_rate(), is {value:.3f} [" in text and "] in the fit, and " in text
    assert "decided differently" not in text


@pytest.mark.parametrize("model", [GLMUCBPolicy(), OffPolicyClassifier()])
def test_policies_without_constraints(model, tmp_path):
    log = LOG[["action", "propensity"]].assign(reward=(LOG["reward"] > 0).astype(float))
    model.fit(X[TRAIN], log[TRAIN])
    _, text = saved(tmp_path, model, X[NEW], log[NEW], attributes=PEOPLE[NEW], by="sex")
    value = off_policy_value(model, X[NEW], log[NEW])
    today = log["reward"][NEW].mean()
    assert f"difference {value.mean_reward - today:.3f} [" in text
    differs = model.predict(X[NEW]) != log["action"][NEW]
    assert f"{differs.sum()} of 800 rows" in text
    assert f"{differs[PEOPLE['sex'] == 'F'].mean():.3f} [" in text


@pytest.mark.parametrize("model", [RegressionSetSelector(n_select=2), SetSelectClassifier()])
def test_selectors_are_compared_with_the_most_popular(model, tmp_path):
    model.fit(X[TRAIN], COSTS[TRAIN])
    shuffled = COSTS[NEW][["none", "call", "letter"]]
    _, text = saved(tmp_path, model, X[NEW], shuffled)
    m = model.n_select
    mean = -model.score(X[NEW], COSTS[NEW])
    popular = COSTS[NEW].mean().sort_values()[:m].sum()
    assert f"this selector {mean:.3f} [" in text and f"most popular {popular:.3f} [" in text
    assert f"difference {mean - popular:.3f} [" in text
    unknown = shuffled.assign(call=np.nan)
    refuses("y has no cost of 'call' in any row", saved, tmp_path, model, X[NEW], unknown)


def test_an_allocation_with_missing_outcomes_has_a_doubly_robust_value(tmp_path):
    model = RegressionSetSelector().fit(X[TRAIN], COSTS[TRAIN])
    is_known = np.random.default_rng(1).random((N, 3)) < [0.2, 0.5, 0.8]
    _, text = saved(tmp_path, model, X[NEW], COSTS[NEW].where(is_known))
    predicted, costs = np.asarray(model.predict_costs(X[NEW])), COSTS[NEW].to_numpy()
    item = predicted.argmin(axis=1)
    rows = np.arange(N)
    rest = np.where(is_known, costs - predicted, 0.0)[rows, item]
    value = np.mean(predicted[rows, item] + rest / is_known.mean(axis=0)[item])
    assert f"this selector {value:.3f} [" in text
    assert f"{1 - is_known.mean():.1%} of the costs are missing" in text
    assert abs(value - costs[rows, item].mean()) < 0.05


def test_a_policy_from_a_table_with_missing_outcomes_has_a_page(tmp_path):
    is_known = np.random.default_rng(1).random((2 * N, 3)) < 0.6
    table = COSTS.where(is_known)
    fitted = ConstrainedPolicy(None, None, positive_rate(of="call") <= 0.2)
    _, text = saved(tmp_path, fitted.fit(X[TRAIN], table[TRAIN]), X[NEW], table[NEW])
    assert "of the costs are missing" in text


# --- decisions -----------------------------------------------------------------------------


class Constant(ClassifierMixin, BaseEstimator):
    """Scores without a signal, so that a recall of .95 takes nearly all rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.sin(1e5 * np.asarray(X)[:, 1])


def test_a_rule_that_is_all_but_constant_is_said_on_top_with_its_cure(tmp_path):
    clf = ConstrainedThreshold(Constant(), constraints=recall() >= 0.95).fit(X[TRAIN], Y[TRAIN])
    _, text = saved(tmp_path, clf, X[NEW], Y[NEW])
    decided = clf.predict(X[NEW])
    least = min(decided[Y[NEW] == label].mean() for label in (0, 1))
    assert least > 0.9
    warning = f"It decides 1 for {decided.mean():.1%} of the rows, and {least:.1%} or more of those"
    assert text.index(warning) < text.index(" Goals ")
    assert "Give groups thresholds of their own (by=)" in text


def test_a_rare_decision_for_a_rare_class_is_no_constant_rule(tmp_path):
    rare = (X["age"] > 2).astype(int).to_numpy()
    clf = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.5)
    _, text = saved(tmp_path, clf.fit(X[TRAIN], rare[TRAIN]), X[NEW], rare[NEW])
    assert "all but constant" not in text


def test_shares_of_decisions_stand_beside_those_without_goals(threshold, policy, tmp_path):
    _, text = saved(tmp_path, threshold, X[NEW], Y[NEW], attributes=PEOPLE[NEW])
    ours, plain = threshold.predict(X[NEW]).mean(), threshold.estimator_.predict(X[NEW]).mean()
    assert "decision share without constraints" in text
    assert f"1 {ours:.1%} {plain:.1%} " in text
    minutes = pd.DataFrame({"minutes": 3.0}, index=X[NEW].index)
    _, text = saved(tmp_path, policy, X[NEW], LOG[NEW], attributes=minutes)
    ours = policy.predict(X[NEW], attributes=minutes) == "call"
    best = policy.expected_costs(X[NEW], attributes=minutes).idxmin(axis=1) == "call"
    logged = LOG["action"][NEW] == "call"
    assert f"call {ours.mean():.1%} {best.mean():.1%} {logged.mean():.1%} " in text


def test_no_rate_of_all_rows_is_printed_twice(threshold, tmp_path):
    page, _ = saved(tmp_path, threshold, X[NEW], Y[NEW], attributes=PEOPLE[NEW], by="sex")
    row = constraint_report(threshold, X[NEW], Y[NEW], attributes=PEOPLE[NEW]).iloc[0]
    assert page.count(f">{figures(row)}</td>") == 1


@pytest.mark.thorough
def test_names_and_groups_are_harmless(tmp_path):
    column, group = "<script>alert(1)</script>", "<img src=x onerror=alert(2)>"
    people = pd.DataFrame({column: np.where(PEOPLE["sex"] == "F", group, "a & b")})
    goal = (each(recall, by=column) >= 0.5).named("</style><script>alert(3)</script>")
    clf = ConstrainedThreshold(LogisticRegression(), constraints=goal)
    clf.fit(X[TRAIN], Y[TRAIN], attributes=people[TRAIN])
    wrong = "<b onclick=alert(4)>"
    page, text = saved(
        tmp_path, clf, X[NEW], Y[NEW], attributes=people[NEW], by=column, title=wrong
    )
    assert wrong in text and group in text and "a & b" in text
    tags = set(re.findall(r"<([a-z0-9]+)", page))
    assert not tags & {"script", "img", "b"} and page.count("</style>") == 1
    assert not re.search(r"<[^>]* on\w+=", page)


def fingerprints(page):
    return re.findall(r"([\d,]+) rows, ([\d,]+) columns?, SHA-256 ([0-9a-f]{64})", page)


def test_sparse_rows(tmp_path):
    sparse = csr_array(X[TRAIN].to_numpy())
    clf = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.5)
    page, text = saved(tmp_path, clf.fit(sparse, Y[TRAIN]), sparse, Y[TRAIN])
    assert fingerprints(page)[0][:2] == ("800", "2") and "recall() >= 0.5" in text
    _, text = saved(tmp_path, clf, sparse, np.where(np.arange(N) < 30, np.nan, Y[TRAIN]))
    assert "30 rows without a label count in no rate that needs one" in text


def test_without_constraints_there_is_an_objective(tmp_path):
    clf = ConstrainedThreshold(LogisticRegression(), recall()).fit(X[TRAIN], Y[TRAIN])
    _, text = saved(tmp_path, clf, X[NEW], Y[NEW])
    assert "No constraints were declared." in text and "The objective, recall(), is" in text


def test_other_models_are_refused(tmp_path):
    plain = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(TypeError, match=r"LogisticRegression has no declared .* to_model_card"):
        saved(tmp_path, plain, X[NEW], Y[NEW])
    refuses("by='race': unknown column 'race'", saved, tmp_path, plain, X[NEW], Y[NEW], by="race")
    slates = LOG[NEW].assign(reward=[(0.0, 1.0)] * N)
    model = OffPolicyClassifier().fit(X[TRAIN], LOG[TRAIN])
    refuses(r"log of slates.*slate_pseudo_inverse", saved, tmp_path, model, X[NEW], slates)
    refuses("is no file in a folder", save_report, model, X[NEW], LOG[NEW], tmp_path)
    assert not list(tmp_path.iterdir())


def test_page_without_labels_has_shares_and_warns_of_goals_not_measured(threshold, tmp_path):
    with pytest.warns(UserWarning, match="is not measured"):
        _, text = saved(tmp_path, threshold, X[NEW], None, attributes=PEOPLE[NEW])
    assert "decision share without constraints" in text


BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)

MEASURE = """<script>
onload = () => {
  document.documentElement.style.width = "390px";
  const wide = [...document.querySelectorAll("body *")].map(e => e.getBoundingClientRect().right);
  document.title = JSON.stringify({
    wide: Math.max(document.body.scrollWidth, ...wide),
    loaded: performance.getEntriesByType("resource").length,
    least: Math.min(...[...document.querySelectorAll("td")]
      .filter(e => e.textContent.length > 5).map(e => e.getBoundingClientRect().width)),
    narrow: matchMedia("(max-width: 600px)").matches,
  });
};
</script>"""


def browse(tmp_path, page, *options):
    """What a browser without a network prints of a page."""
    source = tmp_path / "page.html"
    source.write_text(page, encoding="utf-8")
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    fixed += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [BROWSER, *fixed, *options, source.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode()


@pytest.mark.thorough
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")
def test_a_phone_and_paper(policy, threshold, tmp_path):
    people = PEOPLE[NEW].assign(minutes=3.0)
    for model, y in ((threshold, Y[NEW]), (policy, LOG[NEW])):
        page, _ = saved(tmp_path, model, X[NEW], y, attributes=people, by="sex")
        shown = browse(
            tmp_path, page.replace("</body>", f"{MEASURE}</body>"), "--window-size=500,900",
            "--dump-dom",
        )  # fmt: skip
        found = re.search(
            r'<title>\{"wide":([\d.]+),"loaded":(\d+),"least":([\d.]+),"narrow":true\}', shown
        )
        assert found, shown[:500]
        assert float(found[1]) <= 390 and found[2] == "0"
        assert float(found[3]) > 40, "no column is crushed"
        paper = tmp_path / "report.pdf"
        browse(tmp_path, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
        sizes = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", paper.read_bytes())
        assert sizes and all(
            abs(float(w) - 595.3) < 1 and abs(float(h) - 841.9) < 1 for w, h in sizes
        )


def test_the_fingerprint_of_a_table_knows_names_values_and_order():
    """And nothing of the index."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", None]})
    same = [table.copy(), table.set_axis([5, 6, 7])]
    others = [
        table.rename(columns={"a": "c"}),
        table[["b", "a"]],
        table.iloc[::-1].reset_index(drop=True),
        table.assign(a=[1.0, 2.0, 3.5]),
        table.iloc[:2],
    ]
    prints = [_save_report._fingerprint(frame) for frame in [table, *same, *others]]
    assert len(set(prints[:3])) == 1
    assert len(set(prints)) == 1 + len(others)
