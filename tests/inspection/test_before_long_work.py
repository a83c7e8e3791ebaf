"""What cannot be drawn is told of before anything is replayed or fitted."""

import pytest

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy
from skbandit.inspection import (
    ArmSharesDisplay,
    ReplayDisplay,
    TradeoffDisplay,
    _arm_shares_display,
    _replay_display,
    _tradeoff_display,
)
from tests.worlds import refuses


def in_vain(*args, **kwargs):
    raise AssertionError("long work that nobody will see")


def replayed(**wrong):
    ReplayDisplay.from_estimator(GLMUCBPolicy(), [[0.0]], ["a"], **wrong)


def shared(**wrong):
    ArmSharesDisplay.from_estimator(GLMUCBPolicy(), [[0.0]], ["a"], **wrong)


def traded(**wrong):
    TradeoffDisplay.from_estimator(
        ConstrainedRampClassifier(), [[0.0], [1.0]], [0, 1], bounds=[0.5], **wrong
    )


@pytest.fixture(autouse=True)
def no_long_work(monkeypatch):
    monkeypatch.setattr(_replay_display, "replay", in_vain)
    monkeypatch.setattr(_arm_shares_display, "replay", in_vain)
    monkeypatch.setattr(_tradeoff_display, "constraint_path", in_vain)


@pytest.mark.parametrize("draw", [replayed, shared, traded])
def test_no_axes_and_no_matplotlib(draw, uninstalled):
    refuses("ax must be matplotlib Axes, got list", draw, ax=[], error=TypeError)
    refuses("long work", draw, error=AssertionError)
    uninstalled()
    refuses(r"from_estimator needs matplotlib: pip install", draw, error=ImportError)


def test_no_such_level():
    refuses("confidence_level=95 must lie between 0 and 1", replayed, confidence_level=95)
