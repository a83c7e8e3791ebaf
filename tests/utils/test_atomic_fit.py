"""Fitting a copy: its whole state is committed, or none of it."""

import pytest

from skbandit.utils._fitting import atomic_fit


class Thing:
    def __init__(self, **held):
        vars(self).update(held)


def test_success_replaces_the_state():
    thing = Thing(kept=1, stale=2)
    with atomic_fit(thing) as draft:
        assert draft is not thing
        draft.new = 3
        del draft.stale
    assert vars(thing) == {"kept": 1, "new": 3}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_it(error):
    held = [1]
    thing = Thing(held=held)
    with pytest.raises(error), atomic_fit(thing) as draft:
        draft.held = [2]
        draft.new = 3
        raise error
    assert vars(thing) == {"held": held}
    assert thing.held is held
