"""Reductions of cost-sensitive classification (which of n ads costs least), one file each.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.selection.reductions._all_pairs import AllPairs as AllPairs
from skbandit.selection.reductions._all_pairs import learn_all_pairs as learn_all_pairs
from skbandit.selection.reductions._filter_tree import FilterTree as FilterTree
from skbandit.selection.reductions._filter_tree import learn_filter_tree as learn_filter_tree
from skbandit.selection.reductions._pairwise import PlayedPairs as PlayedPairs
from skbandit.selection.reductions._pairwise import crossed as crossed
from skbandit.selection.reductions._pairwise import learn_pairwise as learn_pairwise
from skbandit.selection.reductions._registry import REDUCTIONS as REDUCTIONS
from skbandit.selection.reductions._registry import WITH_COSTS as WITH_COSTS
from skbandit.selection.reductions._registry import bind_learner as bind_learner
from skbandit.selection.reductions._registry import default_learner as default_learner
from skbandit.selection.reductions._rule import NO_AD as NO_AD
from skbandit.selection.reductions._rule import Examples as Examples
from skbandit.selection.reductions._rule import LowestCost as LowestCost

__all__: list[str] = []
