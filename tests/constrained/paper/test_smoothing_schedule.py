"""The schedule of the smoothing: starts, ends of stages, and where it leads."""

from dataclasses import replace
from itertools import pairwise

import pytest

from skbandit.constrained.paper._smoothed_newton import (
    FINE,
    LAST_SETTLE_TOL,
    PROXIMAL,
    SHARPEST,
    SMOOTHEST,
    Progress,
    SmoothingSchedule,
)

EXACT, ROUGH = 1e-7, 1e-2


def stages(schedule, n=40):
    """All stages from a given one on."""
    found = [schedule]
    for _ in range(n):
        found.append(found[-1].stricter().sharper())
    return found


@pytest.mark.parametrize(
    ("tol", "warm_gap", "eps"),
    [
        (EXACT, None, SMOOTHEST),
        (EXACT, 0.2, SMOOTHEST),  # too far away
        (EXACT, 0.1, PROXIMAL),
        (ROUGH, 0.1, FINE),
        (ROUGH, -1e-9, FINE),  # a gap below 0 by rounding
    ],
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_start(tol, warm_gap, eps, scale):
    gap = None if warm_gap is None else warm_gap * scale
    start = SmoothingSchedule.start(tol * scale, scale, gap)
    assert start.eps == eps
    assert start.lifted
    assert start.lift == eps / 4


@pytest.mark.parametrize("tol", [EXACT, 1e-4, ROUGH])
def test_eps_decreases_to_the_sharpest_and_stays(tol):
    widths = [stage.eps for stage in stages(SmoothingSchedule.start(tol, 1.0, None))]
    assert all(a > b or a == b == SHARPEST for a, b in pairwise(widths))
    assert widths[-1] == SHARPEST


def test_no_stage_is_skipped():
    widths = {stage.eps for stage in stages(SmoothingSchedule.start(EXACT, 1.0, None))}
    assert any(eps > FINE for eps in widths)
    assert any(PROXIMAL < eps <= FINE for eps in widths)
    assert PROXIMAL in widths


def test_exact_solutions_move_the_centers_from_the_proximal_stage_on():
    for stage in stages(SmoothingSchedule.start(EXACT, 1.0, None)):
        assert stage.moves_centers == (stage.eps <= PROXIMAL)


def test_rough_solutions_keep_the_centers_until_the_hinges_are_sharp():
    for stage in stages(SmoothingSchedule.start(ROUGH, 1.0, None)):
        assert stage.moves_centers == (stage.eps == SHARPEST)
        assert stage.lifted or stage.eps == SHARPEST


def test_the_lift_vanishes_once_centers_have_moved():
    stage = SmoothingSchedule(EXACT, 1.0, eps=PROXIMAL)
    assert stage.lift == PROXIMAL / 4
    assert stage.sharper().lift == 0.0
    assert not stage.sharper().lifted


def test_certificates_wait_until_the_gap_can_be_small_enough():
    """The gap is about 0.1 eps^2; a tenth of that is the cautious estimate."""
    assert not SmoothingSchedule(0.9e-4 * 7, 7.0, eps=0.1).certifies
    assert SmoothingSchedule(1.1e-4 * 7, 7.0, eps=0.1).certifies
    assert not SmoothingSchedule(1.0, 1.0, eps=2 * FINE).certifies  # coarse stages never
    assert SmoothingSchedule(1e-30, 1.0, eps=SHARPEST).certifies  # nothing sharper to come


@pytest.mark.parametrize(
    ("progress", "coarse", "fine"),
    [
        (Progress(decrement=1.0, length=0.5, gain=1.0, excess=0.0), False, False),
        (Progress(decrement=0.0, length=0.5, gain=1.0, excess=0.0), True, True),
        (Progress(decrement=0.0, length=0.5, gain=1.0, excess=1.0), False, False),  # violated
        (Progress(decrement=1.0, length=1.0, gain=1.0, excess=1.0), True, False),  # a full step
        (Progress(decrement=1.0, length=0.5, gain=0.0, excess=1.0), True, False),  # no gain
        (Progress(decrement=1.0, length=0.0, gain=0.0, excess=1.0), True, True),  # stuck
    ],
)
def test_ends_of_stages(progress, coarse, fine):
    assert SmoothingSchedule(EXACT, 1.0, eps=SMOOTHEST).is_finished(progress) == coarse
    assert SmoothingSchedule(EXACT, 1.0, eps=FINE).is_finished(progress) == fine


def test_certificates_make_the_proximal_stage_stricter():
    fine = SmoothingSchedule(EXACT, 1.0, eps=FINE)
    assert fine.stricter() == fine
    proximal = replace(fine, eps=PROXIMAL)
    assert proximal.stricter().settle_tol == 0.3 * proximal.settle_tol
    for _ in range(50):
        proximal = proximal.stricter()
    assert proximal.settle_tol == LAST_SETTLE_TOL
