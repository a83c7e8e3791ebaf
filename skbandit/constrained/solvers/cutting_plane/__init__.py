"""Algorithm 2 of Goh et al. (2016): cutting planes on the dual over the multipliers."""

from skbandit.constrained.solvers.cutting_plane._solver import CuttingPlaneSolver

__all__ = ["CuttingPlaneSolver"]
