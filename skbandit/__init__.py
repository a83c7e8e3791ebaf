"""Scikit-learn-compatible estimators for decisions under real-world goals.

`rates` declares constraints. `ConstrainedRampClassifier` is trained to meet them, with
`ConstrainedThreshold` and `ConstrainedReduction` any classifier meets them, of several classes too,
and `ConstrainedPolicy` learns decisions under budgets from a log.
`RegressionSetSelector` and `SetSelectClassifier` choose the best m of n ads per row.
`GLMUCBPolicy` chooses one arm at a time and learns from its rewards; `ReplayScorer` lets
`GridSearchCV` tune such a policy by the reward that it would have earned on a log.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skbandit import rates
    from skbandit.bandit import (
        ConstrainedPolicy,
        GLMUCBPolicy,
        OffPolicyClassifier,
        OraclePolicy,
        SharedGLMPolicy,
        SlatePolicy,
    )
    from skbandit.constrained import (
        ConstrainedRampClassifier,
        ConstrainedReduction,
        ConstrainedThreshold,
        RampClassifier,
        constraint_report,
    )
    from skbandit.evaluation import RateScorer, ReplayScorer, off_policy_value, rate_report, replay
    from skbandit.selection import (
        PopularitySetSelector,
        RegressionSetSelector,
        SetSelectClassifier,
        assign,
    )

__all__ = [
    "ConstrainedPolicy",
    "ConstrainedRampClassifier",
    "ConstrainedReduction",
    "ConstrainedThreshold",
    "GLMUCBPolicy",
    "OffPolicyClassifier",
    "OraclePolicy",
    "PopularitySetSelector",
    "RampClassifier",
    "RateScorer",
    "RegressionSetSelector",
    "ReplayScorer",
    "SetSelectClassifier",
    "SharedGLMPolicy",
    "SlatePolicy",
    "assign",
    "constraint_report",
    "off_policy_value",
    "rate_report",
    "rates",
    "replay",
]

__version__ = "0.1.0"

_NAMES = {
    "bandit": "GLMUCBPolicy OraclePolicy SharedGLMPolicy SlatePolicy",
    "constrained": "ConstrainedRampClassifier ConstrainedReduction ConstrainedThreshold "
    "RampClassifier constraint_report",
    "evaluation": "RateScorer ReplayScorer off_policy_value rate_report replay",
    "logged": "ConstrainedPolicy OffPolicyClassifier",
    "selection": "PopularitySetSelector RegressionSetSelector SetSelectClassifier assign",
}
_ROOM_OF = {name: room for room, names in _NAMES.items() for name in names.split()}
_ROOMS = {*_ROOM_OF.values(), "datasets", "exceptions", "export", "inspection", "logs", "rates"}

if not TYPE_CHECKING:  # else type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        """Import what is asked for: a process that serves a policy needs no classifiers."""
        if name not in _ROOMS | _ROOM_OF.keys():
            raise AttributeError(f"module 'skbandit' has no attribute {name!r}")
        room = importlib.import_module(f"skbandit.{_ROOM_OF.get(name, name)}")
        return getattr(room, name) if name in _ROOM_OF else room

    def __dir__() -> list[str]:
        return sorted((_ROOMS - {"logged"}).union(__all__, ["__version__"]))
