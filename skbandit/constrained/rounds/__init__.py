"""Reductions: multipliers of goals, and rounds of fits to weights or costs.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.constrained.rounds._multipliers import GroupCurves as GroupCurves
from skbandit.constrained.rounds._multipliers import Multipliers as Multipliers
from skbandit.constrained.rounds._multipliers import Rules as Rules
from skbandit.constrained.rounds._multipliers import best_multipliers as best_multipliers
from skbandit.constrained.rounds._multipliers import highest_multipliers as highest_multipliers
from skbandit.constrained.rounds._multipliers import multipliers_per_bound as multipliers_per_bound
from skbandit.constrained.rounds._multipliers import next_multipliers as next_multipliers
from skbandit.constrained.rounds._multipliers import row_costs as row_costs
from skbandit.constrained.rounds._multipliers import rules_of_curve as rules_of_curve
from skbandit.constrained.rounds._multipliers import rules_of_sums as rules_of_sums
from skbandit.constrained.rounds._multipliers import summed_rows as summed_rows
from skbandit.constrained.rounds._multipliers import with_group_thresholds as with_group_thresholds
from skbandit.constrained.rounds._rounds import Criterion as Criterion
from skbandit.constrained.rounds._rounds import Round as Round
from skbandit.constrained.rounds._rounds import best_round as best_round

__all__: list[str] = []
