"""Compiling the language of `skbandit.rates` to linear-fractional forms over rows.

Other rooms import the private side of the language from here, never from the modules behind.

Reading the language
    `AbsoluteRate`, `Atom`: the expressions that `skbandit.rates` does not export.
    `read_objective`, `flatten_constraints`: validate the parameters of an estimator.
    `as_rate`: a number as a constant expression; `smallest_value`, `value_range`: its range.
Describing data
    `Columns`, `Rows`, `Data`: attributes, labels and weights, of X and of X_extra.
    `encode`, `MISSING`: labels as 1, 0 and -1.
Binding
    `expand`: one-sided constraints, one per group; `bind_rate`, `bind_constraints`.
    `atom_counts`, `combine_atoms`: what each row adds to a rate's atoms, and their sum.
    `find_rows`, `rows_behind`: numbers of rows; `fill`: a group form on given groups.
Forms
    `LinearFractionalForms`, `BoundConstraints`: all that a solver sees; `MET`: their tolerance.
    `weight_rows`, `nonnegative_rows`: constraints as rows of Problem 1 of Goh et al. (2016).
Predictions
    `read_predictions`, `on_given_rows`, `measure`, `count`: rates as metrics.
Figures
    `value_and_rows`, `satisfied`, `warn_of_few`: the columns of reports.
Confidence
    `interval`, `effective_rows`: two-sided intervals, for reports.
    `ConfidenceLimit`, `confidence_limits`: one-sided limits that err on the safe side.
    `ScoreLimits`, `score_limits`: one-sided score limits of all constraints, near their level;
    `MeasuredShares`, `reached_quantiles`, `risk_of`: their parts, for many bounds.
"""

from skbandit.rates._binding._bind import (
    atom_counts,
    bind_constraints,
    bind_rate,
    combine_atoms,
    expand,
    fill,
    find_rows,
    rows_behind,
)
from skbandit.rates._binding._columns import Columns
from skbandit.rates._binding._confidence import (
    ConfidenceLimit,
    confidence_limits,
    effective_rows,
)
from skbandit.rates._binding._data import Data, Rows
from skbandit.rates._binding._figures import (
    satisfied,
    value_and_rows,
    warn_of_few,
)
from skbandit.rates._binding._forms import (
    MET,
    BoundConstraints,
    Form,
    LinearFractionalForms,
    nonnegative_rows,
    weight_rows,
)
from skbandit.rates._binding._labels import MISSING, encode
from skbandit.rates._binding._metric import count, measure, on_given_rows, read_predictions
from skbandit.rates._binding._score_limits import (
    MeasuredShares,
    ScoreLimits,
    interval,
    reached_quantiles,
    risk_of,
    score_limits,
)
from skbandit.rates._expression import AbsoluteRate, as_rate, smallest_value, value_range
from skbandit.rates._kinds import Atom
from skbandit.rates._parameters import flatten_constraints, read_objective

__all__ = [
    "MET",
    "MISSING",
    "AbsoluteRate",
    "Atom",
    "BoundConstraints",
    "Columns",
    "ConfidenceLimit",
    "Data",
    "Form",
    "LinearFractionalForms",
    "MeasuredShares",
    "Rows",
    "ScoreLimits",
    "as_rate",
    "atom_counts",
    "bind_constraints",
    "bind_rate",
    "combine_atoms",
    "confidence_limits",
    "count",
    "effective_rows",
    "encode",
    "expand",
    "fill",
    "find_rows",
    "flatten_constraints",
    "interval",
    "measure",
    "nonnegative_rows",
    "on_given_rows",
    "reached_quantiles",
    "read_objective",
    "read_predictions",
    "risk_of",
    "rows_behind",
    "satisfied",
    "score_limits",
    "smallest_value",
    "value_and_rows",
    "value_range",
    "warn_of_few",
    "weight_rows",
]
