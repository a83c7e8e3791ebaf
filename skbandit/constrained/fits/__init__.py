"""Training rows as read, and any classifier fitted to weighted rows or costs, out of fold."""

__all__: list[str] = []
