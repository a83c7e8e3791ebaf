"""The benchmark of replay still runs: its adapters count what they should."""

import numpy as np
import pytest

from benchmarks import _page_boards, replay
from benchmarks._bandit_rivals import N_ARMS, OURS, RIVALS, BanditRival, bandit_sample

# Other people's deprecations are not what is tested.
pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

ALL = RIVALS | OURS


def ready(name):
    rival = ALL[name]
    if rival.cure:
        pytest.skip(f"{rival.module} is {rival.cure}")
    return rival


@pytest.mark.parametrize("name", ALL)
def test_replay(name):
    sample = bandit_sample(1000)
    walk = ready(name).replay(sample)
    kept = walk()
    assert repr(walk()) == repr(kept)  # starts cold each time
    if "squarecb" not in name:
        assert 10 < kept.accepted < 110  # of 1000, each with probability 1/20
        total = kept.mean_reward * kept.accepted
        assert total == pytest.approx(round(total), abs=1e-4)  # a number of clicks
    assert 0 <= kept.mean_reward < 0.4


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].serve])
def test_serve(name):
    sample = bandit_sample(300)
    choose = ready(name).serve(sample)
    assert all(int(choose(x)) in range(N_ARMS) for x in sample.arrays[0][:5])


def test_rows(monkeypatch):
    absent = BanditRival(lambda sample: None, None, 10, "no_such_module", "no-such-package")
    monkeypatch.setattr(replay, "ALL", {"absent": absent})
    (row,) = replay.replay_rows(quick=True)
    assert row["note"] == "not installed: pip install no-such-package"
    assert list(replay.choice_rows(quick=True)) == []


def test_choices_of_the_page(monkeypatch):
    monkeypatch.setattr(_page_boards, "SERVED", 20)
    rows = list(_page_boards._serving(1.0))
    assert len(rows) == 3 * len({row["method"] for row in rows}) >= 9
    assert all(row["µs per choice"] > 0 for row in rows)


def test_a_row_of_ours():
    name = "GLMUCBPolicy logistic, diagonal"
    row = replay.replay_row(name, quick=True)
    assert row["events/s"] > 0
    assert 4_000 < row["kept"] < 6_000
    assert np.isfinite(row["lift"])
    assert set(row) >= {column.name for column in replay.REPLAYED} - {"method", "events"}
    assert 0 < replay.choice_row(name, quick=True)["us a choice"]
