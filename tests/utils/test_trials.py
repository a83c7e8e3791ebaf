"""Effective trials, against values by hand, copies of rows, and simulated persons."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier, ConstrainedReduction, ConstrainedThreshold
from skbandit.evaluation import rate_report, rate_report_blocks
from skbandit.rates import accuracy, difference, precision, recall
from skbandit.utils._trials import correlation, dependence, groups_of_both


def test_rows_of_equal_weight_are_themselves():
    x = np.array([1, 0, 0, 1, 1.0])
    effect = dependence(x - x.mean(), np.ones(5), np.arange(5), x.mean())
    assert (effect.rows, effect.groups, effect.deff, effect.spread) == (5, 5, 1, 1)
    assert effect.widening(0.025) == 1
    assert dependence(x - x.mean(), np.ones(5), None, x.mean()) == effect


def test_dependence_by_hand():
    """Two persons of two rows and one of one: influences, their sums, and the formula."""
    w, x, group = (
        np.array([1, 2, 1, 1, 1.0]),
        np.array([1, 1, 0, 0, 1.0]),
        np.array([0, 0, 1, 1, 2]),
    )
    q = (w * x).sum() / w.sum()
    r = w * (x - q)
    rows, groups = 36 / 8, 36 / (9 + 4 + 1)
    sums = np.array([r[0] + r[1], r[2] + r[3], r[4]])
    deff = (sums**2).sum() / (1 - 1 / groups) / ((r**2).sum() / (1 - 1 / rows))
    spread = (r**2).sum() / (q * (1 - q) * 8)
    effect = dependence(r, w, group, q)
    assert effect.rows == pytest.approx(rows)
    assert effect.groups == pytest.approx(groups)
    assert effect.deff == pytest.approx(max(deff, 1))
    assert effect.spread == pytest.approx(spread)
    few = t.isf(0.1, groups - 1) / t.isf(0.1, rows - 1)
    assert effect.widening(0.1) == pytest.approx(np.sqrt(max(deff, 1) * spread) * few)
    assert effect.trials(0.1) == pytest.approx(rows / effect.widening(0.1) ** 2)


def test_without_variation_a_group_is_one_trial():
    effect = dependence(np.zeros(6), np.ones(6), np.array([0, 0, 1, 1, 2, 2]), 1.0)
    assert effect.deff == pytest.approx(2)


def test_one_group_widens_without_limit():
    x = np.array([1.0, 0, 1, 0])
    assert np.isinf(dependence(x - 0.5, np.ones(4), np.zeros(4, dtype=int), 0.5).widening(0.05))


def test_correlation_is_that_of_the_groups():
    group = np.repeat(np.arange(4), 2)
    first = np.array([1, -1, 2, 0, -1, -1, 0.5, -0.5])
    assert correlation(first, first, group) == pytest.approx(1)
    assert correlation(first, -first[[1, 0, 3, 2, 5, 4, 7, 6]], group) == pytest.approx(-1)
    assert correlation(first, np.zeros(8), group) == 0


GOALS = [accuracy(), recall(), precision(), difference(recall, by="g")]


def rows(rng, persons, copies):
    y, p = rng.random(persons) < 0.4, rng.random(persons) < 0.5
    table = {"g": rng.choice(["a", "b"], persons)}
    person = np.repeat(np.arange(persons), copies)
    return y[person], (p ^ (y & (rng.random(persons) < 0.7)))[person], table["g"][person], person


def test_copies_of_rows_tell_nothing_new():
    """With persons as groups, intervals are about those of one row per person."""
    y, p, g, person = rows(np.random.default_rng(0), 400, 5)
    once = np.unique(person, return_index=True)[1]
    single = rate_report(y[once], p[once], GOALS, attributes={"g": g[once]})
    by_person = rate_report(y, p, GOALS, attributes={"g": g}, groups=person)
    naive = rate_report(y, p, GOALS, attributes={"g": g})
    width = by_person["ci_high"] - by_person["ci_low"]
    np.testing.assert_allclose(width, single["ci_high"] - single["ci_low"], rtol=0.02)
    assert (width > 2 * (naive["ci_high"] - naive["ci_low"])).all()
    np.testing.assert_allclose(by_person["effective_n"], single["effective_n"], rtol=0.03)
    assert by_person["n_groups"].iloc[0] == 400
    assert "n_groups" not in naive


@pytest.mark.parametrize("by", [None, "g"])
def test_blocks_have_the_same_groups(by):
    y, p, g, person = rows(np.random.default_rng(4), 150, 4)
    weight = np.random.default_rng(5).integers(1, 4, len(y)).astype(float)
    table = pd.DataFrame({"y": y, "p": p, "g": g, "person": person, "w": weight})
    given = {"by": by, "confidence_level": 0.9}
    whole = rate_report(y, p, GOALS, attributes=table, sample_weight=weight, groups=person, **given)
    blocks = rate_report_blocks(
        [table[:200], table[200:]],
        GOALS,
        y_true="y",
        y_pred="p",
        weight="w",
        groups="person",
        **given,
    )
    pd.testing.assert_frame_equal(blocks, whole, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Fewer than 20 rows:UserWarning")
def test_few_groups_are_warned_of_and_one_has_no_interval():
    y, p, _, person = rows(np.random.default_rng(2), 60, 3)
    with pytest.warns(UserWarning, match=r"groups has 5 group\(s\)"):
        few = rate_report(y, p, accuracy(), groups=person % 5)
    with pytest.warns(UserWarning, match=r"groups has 1 group\(s\)"):
        single = rate_report(y, p, accuracy(), groups=np.zeros(len(y)))
    assert few["ci_low"].notna().all()
    assert single[["ci_low", "ci_high"]].isna().all(axis=None)
    with pytest.raises(ValueError, match="groups has 3 entries for 180 rows"):
        rate_report(y, p, accuracy(), groups=[1, 2, 3])


@pytest.mark.thorough
@pytest.mark.parametrize(("persons", "visits"), [(80, 10), (300, 4)])
def test_intervals_cover_for_dependent_rows(persons, visits):
    """400 samples: a share of .95 has a standard error of .011; it fails below .92, one in 100."""
    rng, hits = np.random.default_rng(persons), 0
    for _ in range(400):
        person = np.repeat(np.arange(persons), visits)
        chance = rng.beta(2, 3, persons)[person]  # mean .4
        right = rng.random(len(person)) < chance
        report = rate_report(right, np.ones(len(person), dtype=bool), accuracy(), groups=person)
        hits += report["ci_low"][0] <= 0.4 <= report["ci_high"][0]
    assert hits / 400 >= 0.92


@pytest.mark.thorough
def test_intervals_cover_for_weights_that_go_with_the_outcome():
    """Errors weigh four times; 400 samples, fails below .92, one in 100."""
    rng, hits = np.random.default_rng(5), 0
    true = 0.7 / (0.7 + 0.3 * 4)
    for _ in range(400):
        right = rng.random(600) < 0.7
        report = rate_report(right, np.ones(600, dtype=bool), accuracy(),
                             sample_weight=np.where(right, 1.0, 4.0))  # fmt: skip
        hits += report["ci_low"][0] <= true <= report["ci_high"][0]
    assert hits / 400 >= 0.92


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["threshold", "reduction", "ramp", "rate_report"])
def test_groups_are_aligned_and_must_not_be_missing(name):
    """A Series in another order is put in that of X and told; a row without a group is named."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(240, 2)), index=rng.permutation(240))
    X["person"] = np.repeat(np.arange(60), 4)
    y = (X[0] + 0.5 * rng.normal(size=240) > 0).astype(int)
    persons, features = X.pop("person"), X.set_axis(["a", "b"], axis=1)
    goals = recall() >= 0.7

    def report(groups):
        if name == "rate_report":
            return rate_report(y, y, goals, attributes=features, pos_label=1, groups=groups)
        settings = {"objective": precision(), "constraints": goals, "pos_label": 1}
        clf = {
            "threshold": ConstrainedThreshold(LogisticRegression(), **settings),
            "reduction": ConstrainedReduction(LogisticRegression(), **settings),
            "ramp": ConstrainedRampClassifier(**settings),
        }[name].fit(features, y, groups=groups)
        pd.testing.assert_frame_equal(
            clf.constraint_report(features, y, groups=groups),
            clf.constraint_report(features, y, groups=persons),
        )
        return clf.constraint_report_

    with pytest.warns(
        UserWarning, match="groups has the row labels .* in a different order"
    ) as told:
        shuffled = report(persons.sample(frac=1, random_state=0))
    texts = [str(warning.message) for warning in told]
    assert sum("in a different order" in text for text in texts) == 1 + (name != "rate_report")
    pd.testing.assert_frame_equal(shuffled, report(persons))
    with pytest.raises(ValueError, match="groups is missing in row 3: give each row a group"):
        report(persons.where(np.arange(240) != 3))


def test_extra_rows_without_groups_are_groups_of_their_own():
    with pytest.warns(UserWarning, match="groups"):  # of two groups little is known
        code, extra = groups_of_both(
            ["a", "b", "a", "b"], (), None, np.zeros((3, 1)), np.ones(4, dtype=bool)
        )
    assert code.tolist() == [0, 1, 0, 1]
    assert sorted(extra) == [2, 3, 4]
