"""The paper of Goh, Cotter, Gupta & Friedlander (NIPS 2016), and nothing else.

`_problem` has the ramp, Problems 1 to 3 and the convex bounds of the ramp; `_mm` Algorithm 1 and
`_cutting_plane` Algorithm 2; `_starts` and `_train` what precedes and follows Algorithm 1, and
`_ramp_classifier` the estimator around them. Each solver of Problem 3 is one file behind the small
interface of `_interface`.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.constrained.paper._interface import hinge as hinge
from skbandit.constrained.paper._mm import AccuracySchedule as AccuracySchedule
from skbandit.constrained.paper._mm import ElasticPenalty as ElasticPenalty
from skbandit.constrained.paper._mm import majorize_minimize as majorize_minimize
from skbandit.constrained.paper._problem import KINK as KINK
from skbandit.constrained.paper._problem import Iterate as Iterate
from skbandit.constrained.paper._problem import Point as Point
from skbandit.constrained.paper._problem import RowSpan as RowSpan
from skbandit.constrained.paper._problem import compile_problem as compile_problem
from skbandit.constrained.paper._problem import majorize as majorize
from skbandit.constrained.paper._problem import ramp as ramp
from skbandit.constrained.paper._problem import ramp_of_costs as ramp_of_costs
from skbandit.constrained.paper._problem import row_span as row_span
from skbandit.constrained.paper._registry import NAMES as NAMES
from skbandit.constrained.paper._registry import SOLVERS as SOLVERS
from skbandit.constrained.paper._registry import choose_solver as choose_solver
from skbandit.constrained.paper._registry import solver_class as solver_class
from skbandit.constrained.paper._starts import best_intercept as best_intercept
from skbandit.constrained.paper._starts import relaxations as relaxations
from skbandit.constrained.paper._starts import starts as starts
from skbandit.constrained.paper._starts import unconstrained_solution as unconstrained_solution
from skbandit.constrained.paper._tolerances import DIRECTION_SCALES as DIRECTION_SCALES
from skbandit.constrained.paper._tolerances import FEASIBLE as FEASIBLE
from skbandit.constrained.paper._tolerances import FINER as FINER
from skbandit.constrained.paper._tolerances import FIRST_PENALTY as FIRST_PENALTY
from skbandit.constrained.paper._tolerances import LAST_PENALTY as LAST_PENALTY
from skbandit.constrained.paper._tolerances import RAISE_PENALTY as RAISE_PENALTY
from skbandit.constrained.paper._tolerances import RATE_TOL as RATE_TOL
from skbandit.constrained.paper._tolerances import START_PENALTY as START_PENALTY
from skbandit.constrained.paper._tolerances import USELESS as USELESS
from skbandit.constrained.paper._train import TrainingOptions as TrainingOptions
from skbandit.constrained.paper._train import moved_bounds as moved_bounds
from skbandit.constrained.paper._train import randomized as randomized
from skbandit.constrained.paper._train import train as train

__all__: list[str] = []
