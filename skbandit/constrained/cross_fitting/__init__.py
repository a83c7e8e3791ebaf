"""Cross-fitting: directions and thresholds selected on out-of-fold rows."""

__all__: list[str] = []
