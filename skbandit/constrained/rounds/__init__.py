"""Reductions: multipliers of goals, and rounds of fits to weights or costs."""

__all__: list[str] = []
