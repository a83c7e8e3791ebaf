"""Choosing m of n: the set of ads that costs least, for each row."""

from skbandit.selection._logged_costs import logged_costs
from skbandit.selection._popularity import PopularitySetSelector
from skbandit.selection._regression import RegressionSetSelector
from skbandit.selection._set_select import SetSelectClassifier

__all__ = ["PopularitySetSelector", "RegressionSetSelector", "SetSelectClassifier", "logged_costs"]
