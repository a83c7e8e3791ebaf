"""Reductions of cost-sensitive classification (which of n ads costs least), one file each."""

__all__: list[str] = []
