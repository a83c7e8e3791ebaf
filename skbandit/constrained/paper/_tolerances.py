"""Tolerances, penalties and efforts of constrained training, with their units.

Rates, bounds, slacks and objectives are shares: 0.01 is one percentage point. Normalized
constraints are divided by the sum of their absolute coefficients, scores are those of a ramp
that rises from 0 to 1 between -1/2 and 1/2. Constants of one solver stand in its folder, the
width of the ramp's kinks next to `majorize`.
"""

from __future__ import annotations

# --- when a constraint holds ------------------------------------------------------------------
# RATE_TOL (1e-9, of a hard rate, from `skbandit.rates`): hard rates are counts, so only rounding
# separates a tight one from its bound. Ramp rates come from a solver, hence the larger FEASIBLE.

FEASIBLE = 1e-6
"""Normalized violation up to which a ramp constraint holds; beyond it, training is elastic."""

# --- the elastic penalty of MM (objective per unit of normalized violation) --------------------

FIRST_PENALTY, RAISE_PENALTY, LAST_PENALTY = 2.0, 5.0, 1e4
"""First penalty, the factor by which it rises, and where it stops rising; it caps multipliers."""

AT_CAP = 0.999
"""Share of the penalty from which on a multiplier counts as capped by it."""

SHRINKING = 0.7
"""A step that reduces the worst violation to this share or less needs no higher penalty."""

START_PENALTY = 10.0
"""Penalty at which starting points are compared.

Higher than FIRST_PENALTY, which may still rise: a start is chosen once.
"""

# --- how exactly MM solves its subproblems (gaps in units of `RampProblem.objective_scale`) ----

FINER = 2.0
"""Each subproblem is solved to a gap of FINER x the last decrease, within the solver's range."""

TOL, LOOSEST = 1e-5, 1e-5
"""If `tol > TOL`, the final subproblem may be solved less accurately, to LOOSEST at most."""

INACCURATE = 1e-4
"""Duality gap of the last subproblem above which a `ConvergenceWarning` is raised."""

# --- starting points --------------------------------------------------------------------------

DIRECTION_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Factors of a direction that are tried, each with its best intercept."""

HARD_SCALES = tuple(4.0**i for i in range(8))
"""Ranges of scores that are tried for a direction chosen by hard rates, each with its best b.

In units of the ramp's width: over a wide range few rows lie on the ramp, and its rates are
nearly the hard ones.
"""

FLAT = 1e-3
"""Range of scores below which a direction does not separate any rows."""

NO_DIRECTION = 1e-6
"""Range of scores below which w is what rounding and the solver have left of 0; set to 0 then.

Relative to the largest range that lambda permits, if that is below 1.
"""

START_TIE = 1e-10
"""Penalized objectives this close are equal; the first candidate wins, whatever the rounding."""

# --- thresholds -------------------------------------------------------------------------------

USELESS = 0.005
"""A threshold is rejected if its objective is worse than the ramp's by more than this."""

TIGHTEN = 2e-4
"""Normalized amount by which a bound that a hard rate misses moves beyond the miss."""

ROUNDING_ROUNDS, ROUNDING_STEPS, ROUNDING_TOL = 6, 5, 1e-4
"""Moving the ramp's bounds for the sake of hard rates: rounds, MM steps in each, their `tol`."""

RELAXED_STEPS = 10
"""MM steps of the search for the least relaxation of one infeasible bound."""

WORTHWHILE = 1e-3
"""Gain of the objective, expected of slack that hard rates do not use, that is worth a round."""
