"""The cross-fitted ramp classifier: folds, directions, the choice among them, and its path.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.constrained.linear._directions import FEW_COLUMNS as FEW_COLUMNS
from skbandit.constrained.linear._directions import Directions as Directions
from skbandit.constrained.linear._directions import LinearFit as LinearFit
from skbandit.constrained.linear._directions import Mixture as Mixture
from skbandit.constrained.linear._directions import column_scales as column_scales
from skbandit.constrained.linear._directions import fit_logistic as fit_logistic
from skbandit.constrained.linear._directions import standardize as standardize
from skbandit.constrained.linear._folds import assign_to_folds as assign_to_folds
from skbandit.constrained.linear._folds import rows_to_fit as rows_to_fit
from skbandit.constrained.linear._folds import train_folds as train_folds
from skbandit.constrained.linear._path import with_bound as with_bound

__all__: list[str] = []
