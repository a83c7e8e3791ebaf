"""One model of all arms, over features of the context and of the arm.

- `_bilinear`: the posterior of θ = x̃ᵀB z̃ + b, and its updates;
- `_state`: posterior as plain arrays, units of features, and the posterior in new units;
- `_kernels`: what the compiled passes of `skbandit.bandit._kernels` need of this model;
- `_arm_features`: the features of arms, as the estimator is given them.

The estimator, `skbandit.bandit._shared_policy`, stands above with the other policies.
"""

__all__: list[str] = []
