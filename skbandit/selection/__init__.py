"""Choosing m of n ads: selectors of the set of lowest cost per row."""

from skbandit.logged import logged_costs
from skbandit.selection._assign import assign
from skbandit.selection._regression_selector import PopularitySetSelector, RegressionSetSelector
from skbandit.selection._set_select_classifier import SetSelectClassifier

__all__ = [
    "PopularitySetSelector",
    "RegressionSetSelector",
    "SetSelectClassifier",
    "assign",
    "logged_costs",
]
