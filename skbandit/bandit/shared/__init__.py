"""One model of all arms, over features of the context and of the arm.

- `_bilinear`: the posterior of θ = x̃ᵀB z̃ + b, and its updates;
- `_standardize`: running means and variances, and the change of units that they call for;
- `_arm_features`: the table of arm features, checked;
- `_arm_units`: their units, and the posterior in new ones;
- `_kernels`, `_passes`: compiled passes over events: score, choose, learn, replay;
- `_learner`, `_policy`: the estimator.
"""

__all__: list[str] = []
