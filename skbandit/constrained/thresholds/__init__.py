"""Exact thresholds on given scores: one for all rows, or one per group."""

__all__: list[str] = []
