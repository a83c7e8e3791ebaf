"""Plumbing shared by the rooms; nothing here is public."""

__all__: list[str] = []
