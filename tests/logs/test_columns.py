"""Columns of a log under other names: mapped, or named in an error; never overlooked."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.bandit import (
    ConstrainedPolicy,
    OffPolicyClassifier,
    OraclePolicy,
    SharedGLMPolicy,
    SlatePolicy,
    make_policy_pipeline,
)
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    OffPolicyScorer,
    ReplaySplit,
    off_policy_blocks,
    off_policy_value,
    replay,
    replay_blocks,
)
from skbandit.logs import read_log
from tests.worlds import doubly_robust, generic, ips, refuses, snips

LOG = make_bandit_log(3000, n_arms=3, base_rate=0.3, random_state=0)
Y = LOG.y[["action", "reward", "propensity"]].assign(timestamp=np.arange(3000.0))
NAMES = {"action": "arm_id", "reward": "clicked", "propensity": "pscore", "timestamp": "ts"}
OTHER = Y.rename(columns=NAMES)


def policy(**options):
    return GLMUCBPolicy(random_state=0, **options)


def fitted(**options):
    return policy(**options).fit(LOG.X[:500], (OTHER if options else Y)[:500])


CALLS = {
    "replay": lambda model, y, **map_: replay(model, LOG.X, y, **map_).mean_reward,
    "ips": lambda model, y, **map_: ips(model, LOG.X, y, **map_).mean_reward,
    "snips": lambda model, y, **map_: snips(model, LOG.X, y, **map_).mean_reward,
    "doubly_robust": lambda model, y, **map_: (
        doubly_robust(model, LOG.X, y, random_state=0, **map_).mean_reward
    ),
    "replay_blocks": lambda model, y, **map_: (
        replay_blocks(
            clone(model), [(LOG.X, y)], acceptance=0.2, arms=range(3), random_state=0, **map_
        ).mean_reward
    ),
    "off_policy_blocks": lambda model, y, **map_: (
        off_policy_blocks(model, [(LOG.X, y)], arms=range(3), **map_)["snips"].mean_reward
    ),
}
BY_POLICY = CALLS | {
    "fit": lambda model, y: clone(model).fit(LOG.X, y).coef_,
    "partial_fit": lambda model, y: clone(model).partial_fit(LOG.X, y).coef_,
    "event by event": lambda model, y: (
        replay(generic(clone(model)), LOG.X[:200], y[:200], random_state=0).mean_reward
    ),
    "ReplayScorer": lambda model, y: ReplayScorer(random_state=0)(model, LOG.X, y),
    "OffPolicyScorer": lambda model, y: OffPolicyScorer()(model, LOG.X, y),
}


@pytest.mark.filterwarnings("ignore:acceptance=0.2 is above:UserWarning")
@pytest.mark.filterwarnings("ignore:the policy has learned an event at:UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_mapped_columns(call):
    expected = CALLS[call](fitted(), Y)
    assert CALLS[call](fitted(), OTHER, columns=NAMES) == expected
    # a mapping that is given replaces the policy's
    assert CALLS[call](fitted(columns=NAMES), Y, columns={}) == expected


@pytest.mark.filterwarnings("ignore:acceptance=0.2 is above:UserWarning")
@pytest.mark.filterwarnings("ignore:the policy has learned an event at:UserWarning")
@pytest.mark.parametrize("call", BY_POLICY)
def test_columns_of_the_policy(call):
    expected = BY_POLICY[call](fitted(), Y)
    np.testing.assert_array_equal(BY_POLICY[call](fitted(columns=NAMES), OTHER), expected)


def test_columns_of_other_policies():
    """Learning reads no propensities, arrays of actions have no names, and rewards give way."""
    oracle = OraclePolicy(Ridge(), columns=NAMES, random_state=0)
    shared = SharedGLMPolicy(columns=NAMES, random_state=0)
    for one in (policy(columns=NAMES), oracle, shared):
        usual = clone(one).set_params(columns=None).fit(LOG.X, Y)
        for y in (OTHER, OTHER.drop(columns="pscore")):
            found = clone(one).fit(LOG.X, y)
            np.testing.assert_array_equal(found.predict_reward(LOG.X), usual.predict_reward(LOG.X))
        with pytest.raises(ValueError, match="maps 'timestamp' to 'ts', which is not a column"):
            clone(one).fit(LOG.X, OTHER.drop(columns="ts"))
        loose = clone(one).fit(LOG.X, Y["action"].to_numpy(), reward=Y["reward"])
        np.testing.assert_array_equal(loose.predict_reward(LOG.X), usual.predict_reward(LOG.X))


@pytest.mark.filterwarnings("ignore:acceptance=0.2 is above:UserWarning")
def test_the_name_of_another_reward():
    model = fitted(columns=NAMES)
    other = OTHER.assign(minutes=0.5 * OTHER["clicked"])
    for call in ("snips", "replay", "off_policy_blocks", "replay_blocks"):
        options = {"learn": False} if "replay" in call else {}
        found = CALLS[call](model, other, reward="minutes", **options)
        assert found == pytest.approx(0.5 * CALLS[call](model, OTHER, **options)), call
    refuses("both name the rewards", snips, model, LOG.X, other, reward="minutes", columns=NAMES)
    with pytest.raises(ValueError, match="names a column, and y has none"):
        ips(np.ones(3000), None, other["arm_id"].to_numpy(), reward="minutes")
    blocks = [(LOG.X, other)]
    for judge, options in ((off_policy_blocks, {}), (replay_blocks, {"acceptance": 1 / 3})):
        with pytest.raises(ValueError, match="to 'hours', which is not a column of y") as found:
            judge(model, blocks, arms=range(3), reward="hours", **options)
        assert "In block 0" in found.value.__notes__[0]
        with pytest.raises(TypeError, match="reward must name a column of the blocks, got list"):
            judge(model, blocks, arms=range(3), reward=["clicked"], **options)


def test_a_mapped_column_wins_over_one_of_the_usual_name():
    y = Y.assign(served=(Y["action"] + 1) % 3)
    assert read_log(y, columns={"action": "served"}).arms.tolist() == [
        *dict.fromkeys(y["served"].tolist())
    ]


@pytest.mark.parametrize("behind", ["alone", "Pipeline", "make_policy_pipeline"])
def test_a_search_needs_the_columns_of_the_policy_alone(behind):
    def searched(y, columns):
        model, name = policy(columns=columns), "alpha"
        if behind != "alone":
            make = make_pipeline if behind == "Pipeline" else make_policy_pipeline
            model, name = make(StandardScaler(), model), "glmucbpolicy__alpha"
        search = GridSearchCV(
            model,
            {name: [0.1, 1.0]},
            scoring={"replay": ReplayScorer(random_state=0), "snips": OffPolicyScorer()},
            refit="replay",
            cv=ReplaySplit(2),
            error_score="raise",
        ).fit(LOG.X[:2000], y[:2000])
        results = [search.cv_results_[f"mean_test_{score}"] for score in ("replay", "snips")]
        later = LOG.X[2000:], y[2000:]
        judged = snips(search, *later, rule="predict"), replay(search, *later, random_state=0)
        return [*results, *(one.mean_reward for one in judged)]

    np.testing.assert_equal(searched(OTHER, NAMES), searched(Y, None))


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
        (
            OTHER,
            {"action": "arm_id", "reward": "arm_id"},
            "columns repeats 'arm_id': map each once",
        ),
        (Y["action"].to_numpy(), {"action": "a"}, "needs a DataFrame or structured array"),
    ],
)
def test_refused(y, columns, message):
    refuses(message, read_log, y, columns=columns)


def test_choices_that_a_log_has_twice_are_told():
    """The same for a policy that learns, one that is evaluated, and slates."""
    log = make_bandit_log(60, n_arms=2, random_state=0)
    y = log.y.assign(id=[f"k{k}" for k in range(60)])
    y.loc[7, "id"] = "k3"
    message = "1 events more than ids: that of row 7, 'k3', is that of row 3, and counts again"
    policy = fitted()
    for call in (
        lambda: GLMUCBPolicy().fit(log.X, y),
        lambda: GLMUCBPolicy().partial_fit(log.X, y),
        lambda: OffPolicyClassifier(random_state=0).fit(log.X, y),
        lambda: ConstrainedPolicy(random_state=0).fit(log.X, y),
        lambda: off_policy_value(policy, log.X, y),
        lambda: replay(GLMUCBPolicy(), log.X, y, random_state=0),
        lambda: SlatePolicy(n_select=1).fit(log.X, y.assign(action=[(a,) for a in y["action"]])),
    ):
        with pytest.warns(UserWarning, match=message):
            call()
    read_log(y.assign(id=[*range(50), *[None] * 10]))  # of which nothing is known
    with pytest.warns(UserWarning, match=r"row 1, \[1, 2\], is that of row 0"):
        read_log({**y[:2], "id": [[1, 2], [1, 2]]})


def test_a_propensity_may_exceed_1_by_rounding():
    y = {"action": ["a", "b"], "reward": [0.0, 1.0], "propensity": [0.5, 1 + 2e-16 * 3]}
    assert read_log(y).propensity.tolist() == [0.5, 1.0]
    refuses("row 1 has 1.00001", read_log, {**y, "propensity": [0.5, 1.00001]})
    record = policy().record([[0.0]], "a", 1.0000000000000002)
    assert record["propensity"] == 1.0
    refuses("propensity is 1.00001", policy().record, [[0.0]], "a", 1.00001)


def test_the_mapping_is_a_dict():
    with pytest.raises(TypeError, match=r"columns must be a dict such as .* got 'arm_id'"):
        read_log(OTHER, columns="arm_id")
