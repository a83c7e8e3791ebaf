"""One model of all arms, over features of the context and of the arm.

- `_bilinear`: the posterior of θ = x̃ᵀB z̃ + b, and its updates;
- `_standardize`: running means and variances, and the change of units that they call for;
- `_arm_features`: the table of arm features, checked and standardised;
- `_passes`: compiled passes over events: score, choose, learn, replay;
- `_policy`: the estimator.
"""

__all__: list[str] = []
