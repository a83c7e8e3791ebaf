"""Duck typing of policies: their rules, their arms, and Pipelines that end in one."""

from __future__ import annotations

from typing import Any

from skbandit.utils._pipeline import behind_transformers as behind_transformers


def check_rule(rule: Any) -> None:
    """Require the name of the exploring or the greedy choice."""
    if not isinstance(rule, str) or rule not in ("select", "predict"):
        raise ValueError(f"rule must be 'select' or 'predict', got {rule!r}.")


def known_arms(policy: Any) -> list[Any] | None:
    """Labels of the arms that a policy knows, or None if it has no such attribute."""
    arms = getattr(policy, "arms_", getattr(policy, "arms", None))
    return arms if arms is None else plain_labels(arms)


def plain_labels(labels: Any) -> list[Any]:
    """Labels as a list."""
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)
