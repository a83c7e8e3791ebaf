"""Logs of decisions: columns, arms, availability, order, and blocks of events."""

__all__: list[str] = []
