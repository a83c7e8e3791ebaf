"""The cross-fitted ramp classifier: folds, directions, the choice among them, and its path."""

__all__: list[str] = []
