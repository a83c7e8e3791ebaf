"""Prices of goals: the dual of choosing decisions per row, and rules that meet goals as measured.

- `_dual`: multipliers of goals, and which goals cannot hold together; a function of arrays.
- `_search`: the best rule as measured, of classes; `_action_search`: of a policy's actions.
- `_confident`: bounds moved for a level; `_levels`: which level is best.
- `_calibrate`: what rules are, and the choice of one at a level.
"""

__all__: list[str] = []
