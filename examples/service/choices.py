"""Choices of a policy that give each arm a least probability while it is new."""

import numpy as np
from contexts import last_step

FEW_EVENTS = 100
LEAST_PROPENSITY = 0.05
MOST_EXPLORED = 0.2  # of all new arms together

rng = np.random.default_rng()


def choose(policy, x, arms, **given):
    """Choose one of these arms for one row; return the arm and its propensity.

    `given` are attributes, which goals of a policy under budgets may need.

    A policy that has learned much may give a new arm so small a probability that it is never
    chosen. Therefore some choices are drawn from the arms with few events only.
    """
    given["available"] = [tuple(arms)]
    n_events = events_per_arm(policy)
    new = [arm for arm in arms if n_events.get(arm, 0) < FEW_EVENTS]
    explored = min(LEAST_PROPENSITY * len(new), MOST_EXPLORED) if len(new) < len(arms) else 0.0
    if rng.random() >= explored:
        (arm,), (propensity,) = policy.select(x, return_proba=True, **given)
        arm = arm.item() if isinstance(arm, np.generic) else arm
    else:
        arm = new[rng.integers(len(new))]
        propensity = probability(policy, x, arm, **given)
    if explored:
        propensity = (1 - explored) * propensity + (explored / len(new) if arm in new else 0.0)
    return arm, min(float(propensity), 1.0)  # those of "thompson" are integrated numerically


def events_per_arm(policy):
    """Number of events that were learned of each arm."""
    policy = last_step(policy)
    arms = getattr(policy, "arms_", ())
    if not hasattr(policy, "n_updates_"):  # it does not learn: no arm is new
        return {}
    return dict(zip(arms, policy.n_updates_, strict=True)) if len(arms) else {}


def probability(policy, x, arm, **given):
    """Probability with which the policy chooses an arm; arms that it does not know are alike."""
    labels = policy.arms_.tolist()
    chances = policy.select_proba(x, **given)[0]
    if arm in labels:
        return chances[labels.index(arm)]
    return max(0.0, 1 - chances.sum()) / len(set(given["available"][0]) - set(labels))
