"""Rates of several classes: against scikit-learn, one-versus-rest and a tensor counted by hand."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skbandit.constrained import ConstrainedThreshold
from skbandit.evaluation import RateScorer, rate_report, to_model_card
from skbandit.rates import (
    accuracy,
    any_of,
    churn,
    confusion,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    mean,
    negative_predictive_value,
    negative_rate,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
    worst,
)
from tests.worlds import refuses

RNG = np.random.default_rng(3)
N = 400
NAMES = ["benign", "carcinoma", "melanoma"]
Y = RNG.choice(NAMES, N, p=[0.6, 0.25, 0.15])
P = np.where(RNG.random(N) < 0.7, Y, RNG.choice([*NAMES, "review"], N))
TABLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], N),
        "amount": RNG.exponential(size=N),
        "deployed": np.where(RNG.random(N) < 0.8, P, RNG.choice(NAMES, N)),
    }
)
OF_ONE = [
    positive_rate,
    negative_rate,
    recall,
    true_negative_rate,
    false_positive_rate,
    false_negative_rate,
    precision,
    negative_predictive_value,
    f1,
]
# "review" need not be told in each of these tests
pytestmark = pytest.mark.filterwarnings("ignore:y_pred has .*which y_true lacks:UserWarning")
COSTS = {
    "benign": {"benign": 0, "carcinoma": 1, "melanoma": 1.5, "review": 0.3},
    "carcinoma": {"benign": 20, "carcinoma": 0, "melanoma": 2, "review": 0.3},
    "melanoma": {"benign": 50, "carcinoma": 5, "melanoma": 0, "review": 0.3},
}


# --- values -------------------------------------------------------------------------------------


def test_means_and_totals_are_those_of_scikit_learn():
    macro = {"labels": NAMES, "average": "macro"}
    found = mean(f1, of="classes").value(Y, P)
    assert found == pytest.approx(metrics.f1_score(Y, P, **macro))
    found = mean(recall, of="classes").value(Y, P)
    assert found == pytest.approx(metrics.recall_score(Y, P, **macro))
    assert accuracy().value(Y, P) == metrics.accuracy_score(Y, P)
    answered = P != "review"
    assert accuracy(without="review").value(Y, P) == metrics.accuracy_score(
        Y[answered], P[answered]
    )


@pytest.mark.parametrize("normalize", ["true", "pred", "all"])
def test_confusion_is_a_cell_of_scikit_learns_matrix(normalize):
    labels = [*NAMES, "review"]
    matrix = metrics.confusion_matrix(Y, P, labels=labels, normalize=normalize)
    for i, j in itertools.product(range(3), range(4)):
        rate = confusion(labels[i], labels[j], normalize=normalize)
        assert rate.value(Y, P) == pytest.approx(matrix[i, j])


@pytest.mark.parametrize("rate", OF_ONE)
@pytest.mark.parametrize("of", [*NAMES, any_of("carcinoma", "melanoma")])
def test_a_rate_of_one_class_is_that_of_two_classes_this_one_and_the_rest(rate, of):
    """Values, with weights and selections, and intervals."""
    chosen = of.labels if hasattr(of, "labels") else (of,)
    y, p = np.isin(Y, chosen), np.isin(P, chosen)
    assert rate(of=of).value(Y, P) == rate().value(y, p)
    options = {"where": {"sex": "F"}, "weight": "amount"}
    found = rate(of=of, **options).value(Y, P, TABLE)
    assert found == pytest.approx(rate(**options).value(y, p, TABLE))
    several = rate_report(Y, P, rate(of=of), by="sex", attributes=TABLE)
    two = rate_report(y, p, rate(), by="sex", attributes=TABLE)
    columns = ["n_rows", "effective_n", "value", "ci_low", "ci_high"]
    np.testing.assert_allclose(several[columns], two[columns])


def test_costs_and_shares_of_decisions_are_means_over_rows():
    by_row = np.array([COSTS[a][j] for a, j in zip(Y, P, strict=True)])
    assert cost(COSTS).value(Y, P) == pytest.approx(by_row.mean())
    assert cost(pd.DataFrame(COSTS).T).value(Y, P) == pytest.approx(by_row.mean())
    spent = {"benign": 0, "carcinoma": 5, "melanoma": 10, "review": 1}
    expected = np.mean([spent[j] for j in P])
    assert cost(spent).value(Y, P) == cost(spent).value(None, P) == pytest.approx(expected)
    weighted = cost(spent, {"sex": "M"}, weight="amount").value(Y, P, TABLE)
    rows = (TABLE["sex"] == "M").to_numpy()
    expected = np.average([spent[j] for j in P[rows]], weights=TABLE["amount"][rows])
    assert weighted == pytest.approx(expected)


def test_a_decision_that_is_no_class_is_not_right():
    assert accuracy().value(Y, P) + error_rate().value(Y, P) == pytest.approx(1.0)
    assert error_rate().value(Y, P) == np.mean(Y != P)
    answered = P != "review"
    assert error_rate(without="review").value(Y, P) == np.mean(Y[answered] != P[answered])
    assert negative_rate(of="review").value(Y, P) == answered.mean()
    found = recall(of="melanoma", without="review").value(Y, P)
    assert found == np.mean(P[answered & (Y == "melanoma")] == "melanoma")


def test_churn_compares_with_a_model_of_several_classes():
    found = churn("deployed").value(None, P, TABLE)
    assert found == np.mean(P != TABLE["deployed"])
    numbers = pd.factorize(P, sort=True)[0]
    assert churn("deployed").value(numbers, numbers, {"deployed": numbers}) == 0.0


# --- forms --------------------------------------------------------------------------------------


def recalls(rows=slice(None)):
    return {k: np.mean(P[rows][Y[rows] == k] == k) for k in NAMES}


def test_forms_over_classes_are_taken_over_each():
    by_class = list(recalls().values())
    assert each(recall, of="classes").value(Y, P) == min(by_class)
    assert worst(recall, of="classes").value(Y, P) == min(by_class)
    assert mean(recall, of="classes").value(Y, P) == pytest.approx(np.mean(by_class))
    assert difference(recall, of="classes").value(Y, P) == pytest.approx(np.ptp(by_class))
    assert ratio(recall, of="classes").value(Y, P) == pytest.approx(min(by_class) / max(by_class))
    two = [recalls()[k] for k in NAMES[1:]]
    assert each(recall, of=NAMES[1:]).value(Y, P) == min(two)
    shares = [np.mean(P == j) for j in [*NAMES, "review"]]
    assert (each(positive_rate, of="decisions") >= 0.0).rate.value(Y, P) == max(shares)


def test_forms_over_groups_and_classes_compare_groups_within_each_class():
    women, men = ((TABLE["sex"] == one).to_numpy() for one in "FM")
    gaps = [abs(recalls(women)[k] - recalls(men)[k]) for k in NAMES]
    found = difference(recall, by="sex", of="classes").value(Y, P, TABLE)
    assert found == pytest.approx(max(gaps))
    every = [rate for rows in (women, men) for rate in recalls(rows).values()]
    assert each(recall, by="sex", of="classes").value(Y, P, TABLE) == min(every)
    found = mean(recall, by="sex", of="classes").value(Y, P, TABLE)
    assert found == pytest.approx(np.mean(every))


def test_a_report_has_a_row_per_class_and_group():
    goals = [
        each(recall, of="classes") >= 0.6,
        difference(recall, by="sex", of=["carcinoma", "melanoma"]) <= 0.2,
        error_rate(without="review"),
        mean(f1, of="classes") >= 0.5,
        cost(COSTS) <= 9,
        churn("deployed") <= 0.5,
    ]
    report = rate_report(Y, P, goals, attributes=TABLE)
    assert report["goal"].tolist()[:5] == [
        *(f"each(recall, of='classes') >= 0.6 [{k}]" for k in NAMES),
        "difference(recall, by='sex', of=['carcinoma', 'melanoma']) <= 0.2 [F - M, carcinoma]",
        "difference(recall, by='sex', of=['carcinoma', 'melanoma']) <= 0.2 [M - F, carcinoma]",
    ]
    assert len(report) == 3 + 4 + 4
    assert report["of"].tolist() == [
        *NAMES,
        "carcinoma",
        "carcinoma",
        "melanoma",
        "melanoma",
        *4 * [""],
    ]
    np.testing.assert_allclose(report["value"][:3], list(recalls().values()))
    inside = (report["ci_low"] <= report["value"]) & (report["value"] <= report["ci_high"])
    assert inside.all() and (report["ci_high"] - report["ci_low"] > 0.01).all()
    card = to_model_card(report)
    assert "Of 5 goals, 4 are met. Undecided: difference" in card


# --- two classes are the special case -----------------------------------------------------------

TWO = (RNG.random(N) < 0.4).astype(int)
ANSWER = np.where(RNG.random(N) < 0.75, TWO, 1 - TWO)


@pytest.mark.parametrize("rate", OF_ONE)
def test_of_the_positive_class_is_what_no_class_is(rate):
    assert rate(of=1).value(TWO, ANSWER) == rate().value(TWO, ANSWER)
    words, given = (np.array(["no", "yes"])[one] for one in (TWO, ANSWER))
    assert rate(of="yes").value(words, given) == rate().value(TWO, ANSWER)
    assert rate(of="yes").value(words, given, pos_label="no") == rate().value(TWO, ANSWER)
    # a third decision elsewhere changes nothing among the others
    extended = np.append(words, "no"), np.append(given, "ask")
    kept = rate(of="yes", without="ask").value(*extended)
    assert kept == pytest.approx(rate().value(TWO, ANSWER))


@pytest.mark.parametrize(
    "rename", [str.upper, lambda name: name[::-1], [*NAMES, "review"].index], ids=["A", "B", "C"]
)
def test_names_and_order_of_classes_do_not_matter(rename):
    y, p = (np.array([rename(one) for one in values]) for values in (Y, P))
    for label in [*NAMES, "review"]:
        for rate in OF_ONE:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                found = rate(of=rename(label)).value(y, p, labels=np.unique([*y, *p]))
                expected = rate(of=label).value(Y, P)
            np.testing.assert_allclose(found, expected)
    found = difference(recall, of="classes").value(y, p, labels=np.unique([*y, *p]))
    assert found == difference(recall, of="classes").value(Y, P)


def test_a_classifier_of_two_classes_takes_goals_on_either():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:, 0] + rng.normal(size=600) > 0, "bad", "good")
    named = ConstrainedThreshold(LogisticRegression(), recall(of="good"), recall(of="bad") >= 0.8)
    usual = ConstrainedThreshold(
        LogisticRegression(), true_negative_rate(), recall() >= 0.8, pos_label="bad"
    )
    named.fit(X, y), usual.fit(X, y)
    np.testing.assert_array_equal(named.predict(X), usual.predict(X))
    columns = ["value", "cross_fitted", "ci_low", "ci_high", "slack"]
    pd.testing.assert_frame_equal(
        named.constraint_report_[columns], usual.constraint_report_[columns]
    )
    both = ConstrainedThreshold(
        LogisticRegression(), constraints=each(recall, of="classes") >= 0.6
    ).fit(X, y)
    assert both.constraint_report_["satisfied"].tolist() == [True, True]
    assert both.constraint_report_["of"].tolist() == ["bad", "good"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "objective",
    [
        worst(recall, of="classes"),
        mean(recall, of="classes"),
        cost({"bad": {"bad": 0, "good": 5}, "good": {"bad": 1, "good": 0}}),
    ],
    ids=["worst", "mean", "cost"],
)
def test_objectives_over_classes_are_the_best_of_all_thresholds(objective):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0.7, "bad", "good")
    plain = LogisticRegression().fit(X, y)
    found = ConstrainedThreshold(plain, objective, cv="prefit").fit(X, y).predict(X)
    probability = plain.predict_proba(X)[:, 0]  # of "bad"
    values = [
        objective.value(y, np.where(probability >= threshold, "bad", "good"))
        for threshold in (*np.unique(probability), np.inf)
    ]
    best = max(values) if objective.greater_is_better else min(values)
    assert objective.value(y, found) == pytest.approx(best, abs=1e-12)


# --- text, pickles, errors ----------------------------------------------------------------------

EVERY = [
    *(rate(of="melanoma") for rate in OF_ONE),
    recall(of=any_of("carcinoma", "melanoma"), without="review"),
    error_rate({"sex": "F"}, without=any_of("review", "benign")),
    confusion("melanoma", "benign", {"sex": "F"}, normalize="pred", weight="amount"),
    cost(COSTS, "sex == 'F'", weight="amount"),
    cost({"benign": 0, "carcinoma": 5.5, "melanoma": 10, "review": 1}),
    each(recall, of="classes"),
    each(precision, by=["sex"], of=["carcinoma", "melanoma"]),
    worst(recall, of="classes"),
    mean(positive_rate, by="sex", of="decisions"),
    difference(recall, by="sex", of="classes"),
    ratio(recall, of=["benign", "melanoma"]),
    each(recall, of="classes") - 0.5 * positive_rate(of="review"),
]


@pytest.mark.parametrize("rate", EVERY, ids=repr)
def test_text_is_the_code_and_pickles_measure_the_same(rate):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = rate.value(Y, P, TABLE)
        assert repr(eval(repr(rate))) == repr(rate)
        assert eval(repr(rate)).value(Y, P, TABLE) == value
        assert pickle.loads(pickle.dumps(rate)).value(Y, P, TABLE) == value


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda: recall().value(Y, P), ValueError, r"recall\(\) is the rate of one class.*of='be"),
        (lambda: recall(of=["a", "b"]), TypeError, r"each\(recall, of=\['a', 'b'\]\)"),
        (lambda: each(recall), TypeError, "pass by= .groups., of= .classes. or both"),
        (lambda: each(recall, of="melanoma"), TypeError, r"recall\(of='melanoma'\)"),
        (lambda: each(error_rate, of="classes"), TypeError, "not the rate of one class"),
        (lambda: each(recall(of="a"), of="classes"), TypeError, "not the rate of one class"),
        (lambda: each(each(recall, of="classes"), by="g"), ValueError, "cannot be nested"),
        (lambda: any_of("a"), TypeError, "two classes or more"),
        (lambda: confusion("a", "b", normalize="rows"), ValueError, "must be one of"),
        (lambda: cost({"a": {"a": 0}, "b": {"b": 0}}), ValueError, "different decisions"),
        (lambda: cost({"a": {"a": "dear"}}), TypeError, "not a finite number"),
        (lambda: cost({"benign": 0, "carcinoma": 1}).value(Y, P), ValueError, "decision 'melanom"),
        (
            lambda: rate_report(Y, P, [cost(COSTS), cost({"benign": 0, "carcinoma": 1})]),
            ValueError,
            "decision 'melanom",
        ),
        (
            lambda: recall(of="melanom").value(Y, P, labels=[*NAMES, "review"]),
            ValueError,
            "Did you mean 'melanoma'",
        ),
        (lambda: recall(of="a").value(Y, P, labels=NAMES), ValueError, "y has .'review'"),
        (lambda: recall(of="benign").value(Y, P, pos_label="x"), ValueError, "pos_label='x'"),
        (lambda: accuracy().value(Y, np.arange(N) % 3), ValueError, "encode both alike"),
        (lambda: accuracy().value(Y, np.full(N, "none")), ValueError, "encode both alike"),
        (lambda: difference(recall, of=["a", "a"]), ValueError, "twice"),
        (lambda: confusion("a", None), TypeError, "a label and a decision"),
        (lambda: recall(of=np.nan), ValueError, "missing label"),
        (lambda: any_of(["a", "b"]), TypeError, "one after the other"),
        (lambda: error_rate(without=["a", "b"]), TypeError, r"any_of\('a', 'b'\)"),
        (lambda: cost({"a": {"a": np.nan}}), TypeError, "label 'a', decision 'a': nan"),
        (lambda: cost({"a": {}}), TypeError, "pass a DataFrame"),
        (
            lambda: cost(pd.DataFrame(np.ones((2, 2)), list("ab"), list("aa"))),
            ValueError,
            "'a' twice",
        ),
        (
            lambda: rate_report(Y, P, difference(recall, of=["benign"]) <= 0.1),
            ValueError,
            "needs 2",
        ),
        (lambda: recall(of=0.5).value(RNG.random(50), RNG.random(50)), ValueError, "scores|0\\."),
    ],
)
def test_errors_name_the_cure(make, error, told):
    refuses(told, make, error=error)


def test_a_decision_that_no_rate_names_is_told():
    with pytest.warns(UserWarning, match="y_pred has ..review..*never right"):
        assert accuracy().value(Y, P) == np.mean(Y == P)
    assert accuracy().value(Y, P, labels=[*NAMES, "review"]) == np.mean(Y == P)
    with pytest.warns(UserWarning, match="y_pred has ..maybe.."):
        assert recall(of="yes").value(["no", "yes"], ["no", "maybe"]) == 0.0


def test_a_class_that_does_not_occur_is_told():
    with pytest.warns(UserWarning, match="'melanom' is not among the classes.*Did you mean"):
        assert positive_rate(of="melanom").value(Y, P) == 0.0
    with (
        pytest.warns(UserWarning, match="counts as a class without rows"),
        pytest.warns(UndefinedMetricWarning, match="no label 'sarcoma'"),
    ):
        assert np.isnan(recall(of="sarcoma").value(Y, P))


def test_labels_say_what_may_occur_and_change_no_value():
    every = [*NAMES, "review", "sarcoma"]
    for rate in (mean(f1, of="classes"), mean(recall, of="classes"), each(precision, of="classes")):
        assert rate.value(Y, P, labels=every) == rate.value(Y, P)
    two = recall().value([0, 1, 1, 0], [0, 1, "review", 0], labels=[0, 1, "review"])
    assert two == 0.5
    report = rate_report(Y, P, error_rate(), labels=every)
    assert report["value"][0] == np.mean(Y != P)


def test_a_class_without_rows_does_not_spoil_the_others():
    weight = (Y != "melanoma") * 1.0
    others = [recalls()[k] for k in NAMES[:2]]
    with pytest.warns(UndefinedMetricWarning, match="mean without melanoma"):
        found = mean(recall, of="classes").value(Y, P, sample_weight=weight)
    assert found == pytest.approx(np.mean(others))
    with pytest.warns(UndefinedMetricWarning, match="melanoma. is not measured"):
        report = rate_report(Y, P, each(recall, of="classes"), sample_weight=weight)
    assert report["n_rows"][2] == 0
    assert report["value"].notna().tolist() == [True, True, False]
    with pytest.warns(UndefinedMetricWarning, match="not measured"):
        assert len(rate_report(Y, P, each(recall, of="decisions"))) == 4


def test_one_class_is_one_class():
    one = np.full(30, "a")
    report = rate_report(one, one, [each(recall, of="classes"), mean(f1, of="classes")])
    assert report["of"].tolist() == ["a", ""] and report["value"].tolist() == [1.0, 1.0]
    assert cost({"a": {"a": 0.5}}).value(one, one) == 0.5


# --- model selection ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_folds_that_lack_a_class_are_scored():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, "a", "b").astype(object)
    y[:3] = "rare"
    for goal in (mean(recall, of="classes"), worst(recall, of="classes")):
        grid = {"C": [1e-6, 1]}
        search = GridSearchCV(LogisticRegression(), grid, scoring=RateScorer(goal), cv=5)
        scores = search.fit(X, y).cv_results_["mean_test_score"]
        assert np.isfinite(scores).all() and scores[1] > scores[0]
