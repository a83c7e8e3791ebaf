import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.selection._cost_models import weight_params

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
