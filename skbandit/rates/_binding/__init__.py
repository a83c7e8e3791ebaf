"""Compiling the language of `skbandit.rates` to linear-fractional forms over rows.

Other rooms import the private side of the language from here, never from the modules behind.

Reading the language
    `AbsoluteRate`, `Atom`: the expressions that `skbandit.rates` does not export.
    `read_objective`, `flatten_constraints`: validate the parameters of an estimator.
    `as_rate`: a number as a constant expression; `smallest_value`: the lower end of a range.
Describing data
    `Columns`, `Rows`, `Data`: attributes, labels and weights, of X and of X_extra.
    `encode`, `MISSING`: labels as 1, 0 and -1.
Binding
    `expand`: one-sided constraints, one per group; `bind_rate`, `bind_constraints`.
    `EmptyRateError`: no row, or no prediction, in a denominator.
Forms
    `LinearFractionalForms`, `BoundConstraints`: all that a solver sees; `MET`: their tolerance.
    `weight_rows`, `nonnegative_rows`: constraints as rows of Problem 1 of Goh et al. (2016).
Predictions
    `read_predictions`, `on_given_rows`, `measure`, `count`: rates as metrics.
Confidence
    `interval`, `effective_rows`: two-sided intervals, for reports.
    `ConfidenceLimit`, `confidence_limits`, `margins`: one-sided limits, for training.
"""

from skbandit.rates._binding._bind import EmptyRateError, bind_constraints, bind_rate, expand
from skbandit.rates._binding._columns import Columns
from skbandit.rates._binding._confidence import (
    ConfidenceLimit,
    confidence_limits,
    effective_rows,
    interval,
    margins,
)
from skbandit.rates._binding._data import Data, Rows
from skbandit.rates._binding._forms import (
    MET,
    BoundConstraints,
    LinearFractionalForms,
    nonnegative_rows,
    weight_rows,
)
from skbandit.rates._binding._labels import MISSING, encode
from skbandit.rates._binding._metric import count, measure, on_given_rows, read_predictions
from skbandit.rates._expression import AbsoluteRate, as_rate, smallest_value
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
    "EmptyRateError",
    "LinearFractionalForms",
    "Rows",
    "as_rate",
    "bind_constraints",
    "bind_rate",
    "confidence_limits",
    "count",
    "effective_rows",
    "encode",
    "expand",
    "flatten_constraints",
    "interval",
    "margins",
    "measure",
    "nonnegative_rows",
    "on_given_rows",
    "read_objective",
    "read_predictions",
    "smallest_value",
    "weight_rows",
]
