"""Data sets: found in a local folder or downloaded once, always checked by hash."""

from skbandit.datasets._adult import fetch_a9a, fetch_adult

__all__ = ["fetch_a9a", "fetch_adult"]
