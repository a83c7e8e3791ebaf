"""What scores become: thresholds, one or one per group, tables of costs, and the choice of them.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.constrained.rules._candidates import RATE_TOL as RATE_TOL
from skbandit.constrained.rules._candidates import Threshold as Threshold
from skbandit.constrained.rules._candidates import ThresholdSearch as ThresholdSearch
from skbandit.constrained.rules._candidates import best_threshold as best_threshold
from skbandit.constrained.rules._choose import NOISE as NOISE
from skbandit.constrained.rules._choose import choose as choose
from skbandit.constrained.rules._choose import nearest_to_default as nearest_to_default
from skbandit.constrained.rules._choose import objective_scale as objective_scale
from skbandit.constrained.rules._cost_tables import CostCriterion as CostCriterion
from skbandit.constrained.rules._curve import Curve as Curve
from skbandit.constrained.rules._groups import GroupSearch as GroupSearch
from skbandit.constrained.rules._groups import RuleSearch as RuleSearch
from skbandit.constrained.rules._limits import SeparateLimits as SeparateLimits
from skbandit.constrained.rules._limits import SharedRisk as SharedRisk
from skbandit.constrained.rules._limits import allowed_error as allowed_error
from skbandit.constrained.rules._multiple_choice import EXCESS_ROUNDING as EXCESS_ROUNDING
from skbandit.constrained.rules._multiple_choice import MultipleChoice as MultipleChoice
from skbandit.constrained.rules._multiple_choice import Options as Options
from skbandit.constrained.rules._multiple_choice import minimize as minimize
from skbandit.constrained.rules._recalibrate import RIDGE as RIDGE
from skbandit.constrained.rules._recalibrate import Recalibration as Recalibration
from skbandit.constrained.rules._recalibrate import recalibrate as recalibrate

__all__: list[str] = []
