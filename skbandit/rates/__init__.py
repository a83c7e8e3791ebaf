"""Declare objectives and constraints as rates on datasets.

A rate is a share of rows (positive predictions, errors, ...); comparing it with a bound gives
a constraint. Expressions are immutable, independent of data and solvers, survive ``clone``
and pickling, and print as the Python code that creates them. Every rate is also a metric: see
`Rate.value`.

`where` selects rows: None for all; the name of a boolean column of `attributes` (or of X, if
it is a DataFrame); a condition such as ``"sex == 'Female' and age > 30"``, which excludes
rows where its result is missing, for example because age is (but in pandas a missing string
differs from every string, so ``sex != 'Female'`` is true); ``{column: value}`` or ``{column:
[values]}``; or a function from the DataFrame of attributes to a boolean mask. `on` selects the
dataset: the rows of X (``"train"``), of X_extra (``"extra"``) or of both (``"all"``). `weight`
names a column of row weights, such as an amount of money. `of` names the class of a rate, by
default the positive one, and `without` decisions, such as "review", whose rows do not count.

Examples
--------
>>> from skbandit.rates import positive_rate, recall
>>> goals = [recall() >= 0.9, positive_rate("sex == 'F'") >= 0.8 * positive_rate("sex == 'M'")]
>>> goals[1]
positive_rate("sex == 'F'") >= 0.8 * positive_rate("sex == 'M'")
"""

from skbandit.rates._catalog import (
    accuracy,
    any_of,
    churn,
    confusion,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    g_mean_at_least,
    mean,
    negative_predictive_value,
    negative_rate,
    outcome,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
    worst,
)
from skbandit.rates._expression import Constraint, Rate

__all__ = [
    "Constraint",
    "Rate",
    "accuracy",
    "any_of",
    "churn",
    "confusion",
    "cost",
    "difference",
    "each",
    "error_rate",
    "f1",
    "false_negative_rate",
    "false_positive_rate",
    "g_mean_at_least",
    "mean",
    "negative_predictive_value",
    "negative_rate",
    "outcome",
    "positive_rate",
    "precision",
    "ratio",
    "recall",
    "true_negative_rate",
    "worst",
]
