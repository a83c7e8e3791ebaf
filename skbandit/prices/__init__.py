"""Prices of goals: the dual of choosing one decision per row, and rules that meet goals measured.

- `_dual`: multipliers of goals, and which goals cannot hold together; a function of arrays.
- `_calibrate`: bounds are moved until the rule meets the goals where they are measured.
"""

__all__: list[str] = []
