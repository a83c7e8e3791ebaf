"""The documented recipe: write beside the file, then rename; a save that dies harms nothing."""

import os
import pickle

import joblib
import numpy as np
import pytest

from skbandit import GLMUCBPolicy
from tests.reliability.fitted import NAMED_LOG, ROWS
from tests.tiers import first


def save(policy, place):
    """As in the how-to on policies."""
    beside = place.with_suffix(".new")
    joblib.dump(policy, beside)
    os.replace(beside, place)


def assert_same_policy(one, other):
    assert pickle.dumps(one.select(ROWS)) == pickle.dumps(other.select(ROWS))
    np.testing.assert_array_equal(one.covariance_, other.covariance_)


@pytest.mark.parametrize("covariance", first(1, ["diagonal", "full"]))
@pytest.mark.parametrize("update_every", first(1, [7, None]))
def test_saved_in_between_is_as_if_never_stopped(tmp_path, covariance, update_every):
    """Also with events that wait for their window, and after choices were made."""
    log = NAMED_LOG.assign(timestamp=np.arange(60))
    straight = GLMUCBPolicy(covariance=covariance, update_every=update_every, random_state=0)
    for start in range(0, 60, 12):
        rows = slice(start, start + 12)
        place = tmp_path / "policy.joblib"
        if start:
            resumed = joblib.load(place)
            resumed.select(ROWS[:3])
            resumed.partial_fit(ROWS[rows], log[rows])
            straight.select(ROWS[:3])
        straight.partial_fit(ROWS[rows], log[rows])
        if start:
            assert_same_policy(resumed, straight)
        save(straight, place)
    assert os.listdir(tmp_path) == ["policy.joblib"]


class Unfinished(GLMUCBPolicy):
    """Half of it is written, and the disk is full."""

    def __getstate__(self):
        return super().__getstate__() | {"last": Full()}


class Full:
    def __reduce__(self):
        raise OSError("no space left on device")


@pytest.mark.parametrize("error", [OSError])
def test_a_save_that_fails_leaves_the_old_file(tmp_path, error):
    place = tmp_path / "policy.joblib"
    policy = GLMUCBPolicy(random_state=0).fit(ROWS, NAMED_LOG)
    save(policy, place)
    before = place.read_bytes()
    later = Unfinished(random_state=0).fit(ROWS, NAMED_LOG)
    with pytest.raises(error):
        save(later, place)
    assert place.read_bytes() == before
    assert place.with_suffix(".new").exists(), "what is left is beside it"
    save(policy.partial_fit(ROWS, NAMED_LOG), place)
    assert_same_policy(joblib.load(place), policy)
