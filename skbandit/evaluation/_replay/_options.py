"""The options of a replay."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from skbandit.evaluation._policy_protocol import check_rule


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `replay`, validated."""

    learn: bool = True
    rule: str = "select"
    deployment_share: float = 0.0
    acceptance: float | None = None
    max_accepted: int | None = None
    n_repeats: int = 1
    shuffle: bool = False
    subsample: float | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        if not (isinstance(self.deployment_share, Real) and 0 <= self.deployment_share < 1):
            raise ValueError(
                f"deployment_share must be in [0, 1), got {self.deployment_share!r}: without a "
                "learning bucket, use learn=False and rule='predict'."
            )
        for name in ("acceptance", "subsample"):
            share = getattr(self, name)
            if share is not None and not (isinstance(share, Real) and 0 < share <= 1):
                raise ValueError(f"{name} must be None or in (0, 1], got {share!r}.")
        for name in ("n_repeats", "max_accepted"):
            number = getattr(self, name)
            if name == "max_accepted" and number is None:
                continue
            if not (isinstance(number, Integral) and number >= 1):
                raise ValueError(f"{name} must be a positive integer, got {number!r}.")

    def check_policy(self, policy: Any) -> None:
        """Require a policy with the methods that the options need."""
        if isinstance(policy, type):
            raise TypeError(f"{policy.__name__} is a class: pass {policy.__name__}(...).")
        if not hasattr(policy, self.rule):
            other = "predict" if self.rule == "select" else "select"
            raise TypeError(f"{type(policy).__name__} has no {self.rule}: choose rule={other!r}.")
        if self.deployment_share and not hasattr(policy, "predict"):
            raise TypeError(f"{type(policy).__name__} has no predict for the deployment bucket.")

    def learns(self, policy: Any) -> bool:
        """Whether the policy learns in the replay."""
        return self.learn and hasattr(policy, "partial_fit")
