"""What scores become: thresholds, one or one per group, tables of costs, and the choice of them."""

__all__: list[str] = []
