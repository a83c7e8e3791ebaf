"""The cross-fitted ramp classifier: folds, directions, the choice among them, and its path."""
