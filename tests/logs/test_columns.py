"""Columns of a log under other names: mapped, or named in an error; never overlooked."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    ReplaySplit,
    doubly_robust,
    ips,
    off_policy_blocks,
    replay,
    replay_blocks,
    snips,
)
from skbandit.logs import read_log

pl = pytest.importorskip("polars", reason="polars is not installed")

LOG = make_bandit_log(3000, n_arms=3, base_rate=0.3, random_state=0)
Y = LOG.y[["action", "reward", "propensity"]].assign(timestamp=np.arange(3000.0))
NAMES = {"action": "arm_id", "reward": "clicked", "propensity": "pscore", "timestamp": "ts"}
OTHER = Y.rename(columns=NAMES)


def policy():
    return GLMUCBPolicy(random_state=0)


def fitted():
    return policy().fit(LOG.X[:500], Y[:500])


CALLS = {
    "fit": lambda y, **map_: policy().fit(LOG.X, y, **map_).coef_,
    "partial_fit": lambda y, **map_: policy().partial_fit(LOG.X, y, **map_).coef_,
    "replay": lambda y, **map_: replay(policy(), LOG.X, y, **map_).mean_reward,
    "ips": lambda y, **map_: ips(fitted(), LOG.X, y, **map_).mean_reward,
    "snips": lambda y, **map_: snips(fitted(), LOG.X, y, **map_).mean_reward,
    "ips of a table": lambda y, **map_: ips(np.full((3000, 3), 1 / 3), None, y, **map_).mean_reward,
    "doubly_robust": lambda y, **map_: (
        doubly_robust(fitted(), LOG.X, y, random_state=0, **map_).mean_reward
    ),
    "replay_blocks": lambda y, **map_: (
        replay_blocks(
            policy(), [(LOG.X, y)], acceptance=0.2, arms=range(3), random_state=0, **map_
        ).mean_reward
    ),
    "off_policy_blocks": lambda y, **map_: (
        off_policy_blocks(fitted(), [(LOG.X, y)], arms=range(3), **map_)["snips"].mean_reward
    ),
    "ReplayScorer": lambda y, **map_: ReplayScorer(random_state=0, **map_)(policy(), LOG.X, y),
}


@pytest.mark.filterwarnings("ignore:acceptance=0.2 is above:UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_mapped_columns(call):
    np.testing.assert_array_equal(CALLS[call](OTHER, columns=NAMES), CALLS[call](Y))


@pytest.mark.parametrize("form", [pl.from_pandas, lambda y: y.to_records(index=False)])
def test_other_tables(form):
    log = read_log(form(OTHER), columns=NAMES)
    assert log.reward.tolist() == Y["reward"].tolist()
    assert log.propensity.tolist() == Y["propensity"].tolist()


def test_a_mapped_column_wins_over_one_of_the_usual_name():
    y = Y.assign(served=(Y["action"] + 1) % 3)
    assert read_log(y, columns={"action": "served"}).arms.tolist() == [
        *dict.fromkeys(y["served"].tolist())
    ]


def test_in_a_search():
    def searched(y, map_):
        search = GridSearchCV(
            policy(),
            {"alpha": [0.1, 1.0]},
            scoring=ReplayScorer(random_state=0, columns=map_),
            cv=ReplaySplit(2, columns=map_),
        )
        return search.fit(LOG.X, y, **({"columns": map_} if map_ else {})).cv_results_

    found, expected = searched(OTHER, NAMES), searched(Y, None)
    np.testing.assert_array_equal(found["mean_test_score"], expected["mean_test_score"])


def test_a_split_reads_the_mapped_time():
    backwards = OTHER[::-1]
    with pytest.raises(ValueError, match="goes back on row 1"):
        list(ReplaySplit(2, columns=NAMES).split(LOG.X, backwards))
    with pytest.raises(ValueError, match="'timestamp' to 'when', which is not a column"):
        list(ReplaySplit(2, columns={"timestamp": "when"}).split(LOG.X, OTHER))


@pytest.mark.parametrize(
    ("y", "columns", "message"),
    [
        (OTHER.drop(columns=["pscore", "ts"]), None, r"no column 'action': .*'action': 'arm_id'"),
        (Y.rename(columns={"action": "what"}), None, r"columns=\{'action': 'arm_id'\}\. Its"),
        (Y.rename(columns={"propensity": "pscore"}), None, r"\{'propensity': 'pscore'\}, or drop"),
        (Y.rename(columns={"propensity": "prob"}), None, r"\{'propensity': 'prob'\}, or drop"),
        (Y.rename(columns={"timestamp": "ts"}), None, r"\{'timestamp': 'ts'\}, or drop"),
        (Y.rename(columns={"reward": "rewards"}), None, "rename it to 'reward'"),
        (Y.rename(columns={"reward": "clicked"}), None, r"columns=\{'reward': 'clicked'\}"),
        (OTHER, {"action": "arm"}, "'arm', which is not a column of y; did you mean 'arm_id'"),
        (Y, {"action": "zzz"}, "'zzz', which is not a column of y: 'action', 'reward'"),
        (OTHER, {"arm_id": "action"}, r"key 'arm_id', .* Write \{'action': 'arm_id'\}"),
        (OTHER, {"action": "arm_id", "reward": "arm_id"}, "maps 'arm_id' twice"),
        (Y["action"].to_numpy(), {"action": "a"}, "needs a DataFrame or structured array"),
    ],
)
def test_refused(y, columns, message):
    with pytest.raises(ValueError, match=message):
        read_log(y, columns=columns)


def test_the_mapping_is_a_dict():
    with pytest.raises(TypeError, match=r"columns must be a dict such as .* got 'arm_id'"):
        read_log(OTHER, columns="arm_id")
