"""The order of rows: by position, not by label, and time that runs forwards."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, RegressionSetSelector, ReplayScorer, SetSelectClassifier
from skbandit.bandit import SlatePolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay, replay_blocks, replay_slates
from skbandit.logs import read_times
from skbandit.selection import PopularitySetSelector, logged_costs
from tests.worlds import ips, refuses, snips, warns

# === Rows are matched by position; the same labels in another order are nearly always a mistake =


LOG = make_bandit_log(400, n_arms=2, base_rate=0.4, random_state=0)
X, Y = LOG.X, LOG.y[["action", "reward", "propensity"]]
COSTS = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 3)), columns=list("abc"))
ONES = pd.Series(np.ones(400))
ORDER = np.random.default_rng(1).permutation(400)


def policy():
    return GLMUCBPolicy(random_state=0)


def table(index):
    return pd.DataFrame(0.5, index=index, columns=[0, 1])


MISTAKES = {
    "fit": lambda: policy().fit(X, Y.iloc[ORDER]),
    "partial_fit": lambda: policy().partial_fit(X, Y.iloc[ORDER]),
    "reward": lambda: policy().fit(X, Y["action"], reward=Y["reward"].iloc[ORDER]),
    "weight": lambda: policy().fit(X, Y, sample_weight=ONES.iloc[ORDER]),
    "replay": lambda: replay(policy(), X, Y.iloc[ORDER]),
    "ReplayScorer": lambda: ReplayScorer(random_state=0)(policy(), X, Y.iloc[ORDER]),
    "propensity": lambda: ips(
        table(Y.index), None, Y.drop(columns="propensity"), propensity=ONES.iloc[ORDER] / 2
    ),
    "ips": lambda: ips(policy().fit(X, Y), X, Y.iloc[ORDER]),
    "snips of a table": lambda: snips(table(ORDER), None, Y),
    "logged_costs": lambda: logged_costs(Y["action"], -Y["reward"].iloc[ORDER], Y["propensity"]),
    "RegressionSetSelector": lambda: RegressionSetSelector().fit(X, COSTS.iloc[ORDER]),
    "PopularitySetSelector": lambda: PopularitySetSelector().fit(X, COSTS.iloc[ORDER]),
    "SetSelectClassifier": lambda: SetSelectClassifier(reduction="regression").fit(
        X, COSTS.iloc[ORDER]
    ),
    "score": lambda: RegressionSetSelector().fit(X, COSTS).score(X, COSTS.iloc[ORDER]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_same_labels_in_another_order(mistake):
    warns(r"same row labels in different orders .*reset_index", MISTAKES[mistake])


def repeated(labels):
    """A user's day may have several rows."""
    day = np.arange(400) % 7
    return {
        "labels": pd.Index(labels[day]),
        "pairs": pd.MultiIndex.from_arrays([labels[day], day % 2]),
    }


@pytest.mark.parametrize("labels", [np.array([*"abcdefg"]), np.array([np.nan, *range(6)])])
@pytest.mark.parametrize("form", ["labels", "pairs"])
def test_repeated_labels_are_compared_in_order(form, labels):
    index = repeated(labels)[form]
    one, other = X.set_axis(index), Y.set_axis(index)
    policy().fit(one, other)
    policy().fit(one, other.set_axis(index[np.r_[1, 0:399]]))  # each not as often
    for mistake in (other.iloc[ORDER], other.iloc[::-1]):
        with pytest.warns(
            UserWarning, match=r"row \d+ is labeled .*put both tables in one order first; if"
        ):
            policy().fit(one, mistake)


def test_other_indices_say_nothing():
    named = X.set_axis([f"row {k}" for k in range(400)])
    policy().fit(named, Y)
    policy().fit(X.iloc[ORDER], Y.iloc[ORDER])
    replay(policy(), X.iloc[ORDER], Y.iloc[ORDER])
    RegressionSetSelector().fit(named, COSTS).score(X.iloc[ORDER], COSTS.iloc[ORDER])


# === Time that runs backwards is refused or warned of wherever the order of events matters ======

N = 600
LOG_TIME = make_bandit_log(N, n_arms=3, base_rate=0.4, random_state=0)
X_TIME = LOG_TIME.X
Y_TIME = LOG_TIME.y[["action", "reward", "propensity"]].assign(timestamp=np.arange(N) * 10.0)
BACK = Y_TIME.iloc[[*range(300, N), *range(300)]].reset_index(drop=True)

backwards = pytest.warns(UserWarning, match=r"goes back on row 300: .* Sort the log by time")


def timed_policy(**options):
    return GLMUCBPolicy(random_state=0, **options)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_one_call(method):
    with backwards:
        unsorted = getattr(timed_policy(), method)(X_TIME, BACK)
    assert unsorted.last_timestamp_ == (N - 1) * 10
    for options, named in (({"forgetting": 0.9}, "forgetting=0.9"), ({"update_every": 60}, "upd")):
        with pytest.raises(ValueError, match=f"goes back on row 300, from 5990 s to 0 s: {named}"):
            getattr(timed_policy(**options), method)(X_TIME, BACK)


def test_a_call_after_later_events():
    late = Y_TIME.iloc[:5]
    learned = timed_policy().fit(X_TIME[300:], Y_TIME[300:])
    warns(r"row 0, 0 s, is earlier than .* before, 5990 s", learned.partial_fit, X_TIME[:5], late)
    learned.partial_fit(X_TIME[:5], late.assign(timestamp=7000.0))  # forward: not a word
    forgetful = timed_policy(forgetting=0.9).fit(X_TIME[300:], Y_TIME[300:])
    before = forgetful.coef_
    with pytest.raises(ValueError, match=r"earlier than .* forgetting=0\.9 needs events in order"):
        forgetful.partial_fit(X_TIME[:5], late)
    np.testing.assert_array_equal(forgetful.coef_, before)


@pytest.mark.parametrize("advanced", [False, True])
def test_late_events_with_windows_are_refused_before_and_after_advance(advanced):
    learned = timed_policy(update_every=60).fit(X_TIME[:300], Y_TIME[:300])
    if advanced:
        learned.advance(Y_TIME["timestamp"].iloc[299] + 60)
    with pytest.raises(ValueError, match=r"earlier than .* update_every needs events in order"):
        learned.partial_fit(X_TIME[:5], Y_TIME[:5])
    # late within the window of the latest event, which is no window before it
    learned.partial_fit(X_TIME[:1], Y_TIME.iloc[:1].assign(timestamp=2981.0))


NOON = 1_700_000_000  # in seconds


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64"])
@pytest.mark.parametrize(("unit", "factor"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_other_units_than_seconds(unit, factor, dtype):
    at = (NOON + pd.Series(range(0, 10 * N, 10))) * factor
    log = Y_TIME.assign(timestamp=at.astype(dtype))
    daily = timed_policy(update_every="1h")
    with pytest.warns(UserWarning, match=rf"after the year 5138: .*unit='{unit}'\)"):
        wrong = replay(daily, X_TIME, log, random_state=0)
    right = replay(
        daily, X_TIME, log.assign(timestamp=pd.to_datetime(at, unit=unit)), random_state=0
    )
    seconds = replay(daily, X_TIME, log.assign(timestamp=at / factor), random_state=0)
    assert right.mean_reward == seconds.mean_reward != wrong.mean_reward


@pytest.mark.parametrize(
    "times, cure",
    [
        (["2024-01-01"], "convert with pandas.to_datetime"),
        ([datetime.date(2024, 1, 1)], "convert with pandas.to_datetime"),
        ([pd.Timedelta("1h")], "add the time from which they count"),
        (pd.Series([pd.Timedelta("1h")], dtype=object), "add the time from which they count"),
    ],
)
def test_what_are_no_times(times, cure):
    refuses(f"must be datetimes or numbers of seconds.*: {cure}", read_times, times, 1)
    refuses("timestamp is missing on row 1", read_times, [NOON, None], 2)


def test_a_wrong_unit_is_told_of_once_per_call():
    """Also if the policy is passed the events one by one, and learns them."""
    at = (NOON + np.arange(40)) * 1000
    slates = pd.DataFrame({"action": [("a", "b"), ("b", "a")] * 20, "timestamp": at})
    slates["reward"] = [(1.0, 0.0)] * 40
    contexts = np.zeros((40, 1))
    with pytest.warns(UserWarning, match="after the year 5138") as caught:
        replay_slates(SlatePolicy(n_select=2, random_state=0), contexts, slates)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="after the year 5138") as caught:
        read_times(at, 40)
        read_times(at + 1, 40)
    assert str(caught[0].message) == str(caught[1].message)  # so that Python shows it once


def test_replay():
    refuses(r"goes back on row 300, .*: replay needs", replay, timed_policy(), X_TIME, BACK)
    with pytest.raises(ValueError, match=r"replay needs events .* by successive halving shuffle"):
        ReplayScorer()(timed_policy(), X_TIME, BACK)
    halves = [(X_TIME[300:], Y_TIME[300:]), (X_TIME[:300], Y_TIME[:300])]
    with pytest.raises(ValueError, match=r"0 s, is earlier than the end of the block") as why:
        replay_blocks(timed_policy(), halves, acceptance=0.2, arms=range(3))
    assert why.value.__notes__ == ["In block 1, counted from 0."]


def test_a_policy_that_knows_the_future():
    learned = timed_policy().fit(X_TIME[300:], Y_TIME[300:])
    future = pytest.warns(UserWarning, match=r"learned an event at 5990 s, .* at 0 s.*ReplaySplit")
    with future:
        replay(learned, X_TIME[:300], Y_TIME[:300])
    replay(learned, X_TIME[:300], Y_TIME[:300], learn=False)  # fixed, as for ips
    with pytest.warns(UserWarning, match="it knows the future"):
        replay_blocks(
            learned,
            [(X_TIME[:300], Y_TIME[:300])],
            acceptance=float(Y_TIME["propensity"].min()),
            arms=range(3),
        )
    replay(timed_policy().fit(X_TIME[:300], Y_TIME[:300]), X_TIME[300:], Y_TIME[300:])
