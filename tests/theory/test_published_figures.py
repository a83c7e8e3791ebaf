"""What Figures 2 and 3 of Goh et al. (2016) claim, on Adult.

No statement is statistical: splits are seeded, and bounds leave a standard error or two of a test
error as room. Where this data does not bear a claim out, that is said.
"""

import numpy as np
import pandas as pd
import pytest

from benchmarks._published_goals import churning, covariance_bound, everybody, fair, split

pytestmark = pytest.mark.nightly

NOISE = 0.003
"""Standard error of an error of .16 on the 16,281 test rows."""

SPLIT_NOISE = 0.008
"""And of one of .21 on 2,800 rows held out."""

CHURN_NOISE = 0.005
"""And of a churn of .04 on the 1,513 rows of D3 held out."""


@pytest.fixture(scope="module")
def figure_2():
    """Test error and ratio: ours by 1/kappa (deterministic, randomized), covariance by c."""
    train, test = split(everybody(), run=0)
    asked = (1.0, 1.25, 2.0, 3.0, 6.0)
    scores = [test.X @ fair(train, one).coef_[0] for one in asked]
    threshold = np.array([test.figures((z > 0).astype(float)) for z in scores])
    drawn = np.array([test.figures(np.clip(0.5 + z, 0, 1)) for z in scores])
    fit = covariance_bound(train)
    rival = np.array(
        [test.figures((fit(c)(test.X) > 0).astype(float)) for c in (2.0, 0.0, -2.0, -3.0)]
    )
    return np.array(asked), threshold, drawn, rival


def test_kappa_is_an_effective_proxy_for_the_ratio(figure_2):
    """Until the ratio of an SVM without constraints, 3.6: beyond, the constraint is slack."""
    asked, threshold, drawn, _ = figure_2
    for found in (threshold, drawn):
        np.testing.assert_allclose(found[:4, 1], asked[:4], rtol=0.05)
        assert 3.4 < found[4, 1] < 3.9


def test_fairness_costs_from_nothing_to_two_percent(figure_2):
    _, threshold, _, rival = figure_2
    svm = rival[0, 0]
    assert abs(threshold[-1, 0] - svm) <= NOISE
    assert svm + 0.01 < threshold[0, 0] <= svm + 0.025
    assert (np.diff(threshold[:, 0]) <= NOISE).all()


def test_a_covariance_constraint_reaches_every_ratio_too(figure_2):
    """The paper has ratios that it cannot reach for any c, but eq. 8 goes on below c = 0."""
    _, _, _, rival = figure_2
    assert rival[0, 1] > 3
    assert 1.5 < rival[1, 1] < 2.0  # equal mean scores are not equal rates
    assert rival[-1, 1] < 1.0
    assert (np.diff(rival[:, 1]) < 0).all()


def test_a_covariance_constraint_is_not_more_accurate_at_any_ratio(figure_2):
    """The paper has it .03 worse everywhere; here it is level to 1.8, and worse at parity."""
    _, threshold, _, rival = figure_2
    by_ratio = rival[np.argsort(rival[:, 1])]
    lost = np.interp(threshold[:4, 1], by_ratio[:, 1], by_ratio[:, 0]) - threshold[:4, 0]
    assert (lost > -NOISE).all()
    assert 0.001 < lost[0] < 0.01


@pytest.fixture(scope="module")
def figure_3():
    """Churn on D3, errors on D1 and D2, recall on D2, in and out of sample, by rule."""
    rows = pd.DataFrame(churning(runs=1, quick=False)).set_index("rule")
    svm = rows[rows["asked"].isna()].iloc[0]
    return svm, rows.loc["deterministic"], rows.loc["randomized"]


def test_churn_stays_below_its_target(figure_3):
    """The randomized rule's is just the target on training rows."""
    _, threshold, drawn = figure_3
    np.testing.assert_allclose(drawn["churn train"], drawn["asked"], atol=3e-4)
    assert (threshold["churn train"] <= threshold["asked"]).all()
    assert (threshold["churn test"] <= threshold["asked"] + 2 * CHURN_NOISE).all()
    assert (np.diff(threshold["churn train"]) > 0).all()


def test_recall_is_kept(figure_3):
    """Of the randomized rule; at five steps of the threshold's, all but .003 is."""
    svm, threshold, drawn = figure_3
    assert (drawn["recall train"] >= svm["recall train"] - 1e-3).all()
    assert (threshold["recall train"] >= svm["recall train"] - 5e-3).all()


def test_no_more_errors_than_a_thresholded_svm_at_its_churn_or_less(figure_3):
    """The paper has fewer errors at any churn; here a third of the churn costs .02 of error."""
    svm, threshold, _ = figure_3
    last, first = threshold.iloc[-1], threshold.iloc[0]
    assert last["churn train"] <= svm["churn train"]
    assert last["error train"] <= svm["error train"]
    assert last["error test"] <= svm["error test"] + 2 * SPLIT_NOISE
    assert first["error test"] <= svm["error test"] + 0.02 + 2 * SPLIT_NOISE
