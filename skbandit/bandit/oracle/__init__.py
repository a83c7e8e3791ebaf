"""Any scikit-learn estimator as the reward model of a policy.

- `_reward_models`: one model per arm, when it is fitted, and what it predicts;
- `_learner`, `_policy`: the estimator.
"""

__all__: list[str] = []
