import numpy as np
import pytest
import sklearn
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection._cost_models import weight_params
from skbandit.selection.reductions._registry import REDUCTIONS

W = np.array([1.0, 2.0])


def test_plain_learner():
    assert weight_params(LogisticRegression(), W)["sample_weight"] is W


@pytest.mark.parametrize("weight", [None, np.ones(3)])
def test_no_weights_are_not_passed(weight):
    assert weight_params(KNeighborsClassifier(), weight) == {}


def test_last_step_of_pipelines():
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    assert list(weight_params(inner, W)) == ["logisticregression__sample_weight"]
    outer = make_pipeline(StandardScaler(), inner)
    assert list(weight_params(outer, W)) == ["pipeline__logisticregression__sample_weight"]


def test_pipelines_with_routing():
    last = LogisticRegression()
    with sklearn.config_context(enable_metadata_routing=True):
        last.set_fit_request(sample_weight=True)
        assert list(weight_params(make_pipeline(StandardScaler(), last), W)) == ["sample_weight"]


def test_searches_pass_weights_on():
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]})
    assert list(weight_params(search, W)) == ["sample_weight"]


def test_a_learner_without_weights_is_named():
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        weight_params(make_pipeline(StandardScaler(), KNeighborsClassifier()), W)


# --- learners that were fitted before --------------------------------------------------------

OLD_X = np.random.default_rng(0).normal(size=(60, 3))
OLD_Y = OLD_X @ np.random.default_rng(1).normal(size=(3, 6))


def trained_on(n_ads, y=OLD_Y):
    return FrozenEstimator(Ridge().fit(OLD_X, y[:, :n_ads] if n_ads > 1 else y[:, 0]))


def with_a_hole(y):
    return np.where(np.arange(y.size).reshape(y.shape) == 7, np.nan, y)


@pytest.mark.parametrize("selector", [RegressionSetSelector, SetSelectClassifier])
@pytest.mark.parametrize("n_ads", [1, 2, 3, 5, 6])
def test_a_frozen_learner_of_other_ads(selector, n_ads):
    selector = selector(trained_on(n_ads), n_select=2)
    if isinstance(selector, SetSelectClassifier):
        selector.set_params(reduction="regression")
    available = np.arange(60)[:, None] % 9 != np.arange(4)
    for y, options in (
        (OLD_Y[:, :4], {}),
        (OLD_Y[:, :4], {"available": available}),
        (with_a_hole(OLD_Y[:, :4]), {}),
    ):
        with pytest.raises(ValueError, match=f"predicts {n_ads} costs per row, .* passed 4:"):
            selector.fit(OLD_X, y, **options)
    selector.set_params(estimator=make_pipeline(StandardScaler(), selector.estimator))
    with pytest.raises(ValueError, match=f"Pipeline predicts {n_ads} costs per row, .* passed 4:"):
        selector.fit(OLD_X, OLD_Y[:, :4])


@pytest.mark.parametrize("y", [OLD_Y[:, :4], with_a_hole(OLD_Y[:, :4])], ids=["all", "a hole"])
def test_a_frozen_learner_of_the_same_ads(y):
    frozen = trained_on(4)
    selector = RegressionSetSelector(frozen, n_select=2).fit(OLD_X, y)
    np.testing.assert_array_equal(selector.predict_costs(OLD_X), frozen.predict(OLD_X))


@pytest.mark.parametrize("ad_effect", [0.0, 1.0])
def test_a_frozen_learner_of_pairs_predicts_one_cost(ad_effect):
    features = np.eye(4)
    pairs = np.repeat(OLD_X, 4, axis=0), np.tile(features, (60, 1))
    two = Ridge().fit(np.hstack(pairs), np.ones((240, 2)))
    selector = RegressionSetSelector(FrozenEstimator(two), ad_effect=ad_effect)
    with pytest.raises(ValueError, match="predicts 2 costs per row, but its fit was passed 1"):
        selector.fit(OLD_X, OLD_Y[:, :4], ad_features=features)


@pytest.mark.parametrize("reduction", ["filter_tree", "weighted_all_pairs", "one_vs_rest"])
def test_a_frozen_classifier_of_other_classes(reduction):
    frozen = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 3))
    message = "has the classes 0, 1, 2, but its fit was passed 0, 1:"
    with pytest.raises(ValueError, match=message):
        SetSelectClassifier(frozen, reduction=reduction).fit(OLD_X, OLD_Y)
    with pytest.raises(ValueError, match=message):
        RegressionSetSelector(frozen).fit(OLD_X, np.sign(OLD_Y))


WRAPPERS = {
    "alone": lambda frozen: frozen,
    "in a Pipeline": lambda frozen: make_pipeline(StandardScaler(), frozen),
    "in a bag": lambda frozen: (BaggingClassifier if is_classifier(frozen) else BaggingRegressor)(
        frozen, 2
    ),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
@pytest.mark.parametrize("reduction", [*sorted(REDUCTIONS.keys() - {"regression"})])
def test_a_frozen_classifier_cannot_learn_rounds(reduction, wrap):
    """Nor if it knows the classes 0 and 1, by chance."""
    frozen = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 2))
    with pytest.raises(ValueError, match="frozen, so it cannot learn the labels of each round: "):
        SetSelectClassifier(wrap(frozen), reduction=reduction).fit(OLD_X, OLD_Y)
    pairs = FrozenEstimator(LogisticRegression().fit(OLD_Y @ np.ones((6, 9)), np.arange(60) % 2))
    with pytest.raises(ValueError, match="frozen, so it cannot learn the labels of each round: "):
        SetSelectClassifier(wrap(pairs)).fit(OLD_X, OLD_Y, ad_features=np.eye(6))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
def test_one_frozen_model_cannot_learn_several_ads(wrap):
    """All ads would get the same costs."""
    classifier = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 2))
    learners = [wrap(classifier), MultiOutputRegressor(wrap(trained_on(1)))]
    for learner in learners:
        for y in (np.sign(OLD_Y), with_a_hole(np.sign(OLD_Y))):
            with pytest.raises(ValueError, match="is frozen, so it cannot learn the costs of ea"):
                RegressionSetSelector(learner).fit(OLD_X, y)
        RegressionSetSelector(learner).fit(OLD_X, np.sign(OLD_Y[:, :1]))
    calibrated = CalibratedClassifierCV(classifier)
    RegressionSetSelector(calibrated).fit(OLD_X, np.sign(OLD_Y))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda selector: selector,
        lambda selector: make_pipeline(StandardScaler(), selector),
        lambda selector: GridSearchCV(selector, {"n_select": [1]}),
        lambda selector: FrozenEstimator(selector.fit(OLD_X, OLD_Y)),
    ],
    ids=["alone", "in a Pipeline", "in a search", "frozen"],
)
def test_a_selector_is_no_learner_of_costs(wrap):
    inner = wrap(RegressionSetSelector(n_select=6))  # as many labels as ads
    for outer in (RegressionSetSelector(inner), SetSelectClassifier(inner, reduction="regression")):
        with pytest.raises(ValueError, match="needs a learner of costs, but its estimator chooses"):
            outer.fit(OLD_X, OLD_Y)
