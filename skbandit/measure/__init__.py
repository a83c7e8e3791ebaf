"""Rates as training and reports need them: bound goals, intervals, limits, merged rows.

`rates` declares, and measures values on given rows; nothing there imports from here. Other packages
import the names of both from this door.
"""

from skbandit.measure._bind import as_constraint as as_constraint
from skbandit.measure._bind import bind_atom as bind_atom
from skbandit.measure._bind import bind_constraints as bind_constraints
from skbandit.measure._bind import bind_objective as bind_objective
from skbandit.measure._bind import bind_rate as bind_rate
from skbandit.measure._bind import count_rows_of_rates as count_rows_of_rates
from skbandit.measure._bind import expand as expand
from skbandit.measure._bind import flatten_constraints as flatten_constraints
from skbandit.measure._bind import objective_rates as objective_rates
from skbandit.measure._bind import read_objective as read_objective
from skbandit.measure._bind import terms_of as terms_of
from skbandit.measure._bind import warn_of_groups as warn_of_groups
from skbandit.measure._bind import warn_of_no_group as warn_of_no_group
from skbandit.measure._bind import warn_of_weightless as warn_of_weightless
from skbandit.measure._forms import BoundConstraints as BoundConstraints
from skbandit.measure._forms import LinearFractionalForms as LinearFractionalForms
from skbandit.measure._forms import indicators as indicators
from skbandit.measure._forms import nonnegative_rows as nonnegative_rows
from skbandit.measure._forms import weight_rows as weight_rows
from skbandit.measure._merged import BlockReducer as BlockReducer
from skbandit.measure._merged import MergedRows as MergedRows
from skbandit.measure._merged import merge_equal as merge_equal
from skbandit.measure._metric import Estimates as Estimates
from skbandit.measure._metric import Report as Report
from skbandit.measure._metric import numbers_of_goals as numbers_of_goals
from skbandit.measure._metric import satisfied as satisfied
from skbandit.measure._metric import verdicts as verdicts
from skbandit.measure._metric import warn_of_few as warn_of_few
from skbandit.measure._metric import worst_pairs as worst_pairs
from skbandit.measure._score_limits import ScoreLimits as ScoreLimits
from skbandit.measure._score_limits import cluster_factors as cluster_factors
from skbandit.measure._score_limits import interval as interval
from skbandit.measure._score_limits import intervals as intervals
from skbandit.measure._score_limits import reached_quantiles as reached_quantiles
from skbandit.measure._score_limits import score_limits as score_limits
from skbandit.measure._score_limits import trials_of as trials_of
from skbandit.rates._atoms import atom_amounts as atom_amounts
from skbandit.rates._atoms import atom_weights as atom_weights
from skbandit.rates._atoms import check_classes as check_classes
from skbandit.rates._atoms import columns_of_selections as columns_of_selections
from skbandit.rates._atoms import rows_of_atom as rows_of_atom
from skbandit.rates._atoms import tables as tables
from skbandit.rates._columns import Columns as Columns
from skbandit.rates._columns import Data as Data
from skbandit.rates._columns import Rows as Rows
from skbandit.rates._columns import UnknownColumnError as UnknownColumnError
from skbandit.rates._columns import check_groups as check_groups
from skbandit.rates._columns import columns_of_condition as columns_of_condition
from skbandit.rates._columns import number_groups as number_groups
from skbandit.rates._columns import read_by as read_by
from skbandit.rates._columns import refuse_alike as refuse_alike
from skbandit.rates._columns import values_at as values_at
from skbandit.rates._labels import MISSING as MISSING
from skbandit.rates._labels import distinct as distinct
from skbandit.rates._labels import encode as encode
from skbandit.rates._labels import encode_classes as encode_classes
from skbandit.rates._labels import positive_is_known as positive_is_known
from skbandit.rates._labels import warn_of_blank as warn_of_blank
from skbandit.rates._values import count as count
from skbandit.rates._values import filled as filled
from skbandit.rates._values import on_given_rows as on_given_rows
from skbandit.rates._values import read_measured as read_measured
from skbandit.rates._values import warn_of_unnamed as warn_of_unnamed
from skbandit.utils._validation import RATE_TOL as RATE_TOL

__all__: list[str] = []
