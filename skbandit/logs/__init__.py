"""Read logged decisions: columns, arms, availability and time order; blocks; estimated rewards.

`join_rewards` is for users. The other names are for other packages, which import them from here.

`read_log` turns a log in any of its forms into a `Log` of plain arrays, in which arms are numbers;
`Codes` maps labels to these numbers. `available` is a boolean table with one column per arm, one
collection of labels per row, or one for all rows. `read_pools` reads it for policies, `read_mask`
for selectors, both after `align_rows`, which needs X as the user passed it.
"""

from skbandit.logs._arm_models import APART as APART
from skbandit.logs._arm_models import ArmEvents as ArmEvents
from skbandit.logs._arm_models import RewardsByArm as RewardsByArm
from skbandit.logs._arm_models import Sharing as Sharing
from skbandit.logs._arm_models import expected_reward as expected_reward
from skbandit.logs._arm_models import halves_of_rows as halves_of_rows
from skbandit.logs._arm_models import range_of as range_of
from skbandit.logs._arm_models import sharing_of as sharing_of
from skbandit.logs._arm_models import warn_of_wild_context as warn_of_wild_context
from skbandit.logs._arm_models import within_range as within_range
from skbandit.logs._arms import POOLS_UNKNOWN as POOLS_UNKNOWN
from skbandit.logs._arms import Codes as Codes
from skbandit.logs._arms import align_rows as align_rows
from skbandit.logs._arms import ascending as ascending
from skbandit.logs._arms import code_labels as code_labels
from skbandit.logs._arms import in_label_order as in_label_order
from skbandit.logs._arms import label_array as label_array
from skbandit.logs._arms import label_order as label_order
from skbandit.logs._arms import one_known_tuple as one_known_tuple
from skbandit.logs._arms import order_of_labels as order_of_labels
from skbandit.logs._arms import plain_labels as plain_labels
from skbandit.logs._arms import read_mask as read_mask
from skbandit.logs._arms import read_pools as read_pools
from skbandit.logs._arms import warn_without_pools as warn_without_pools
from skbandit.logs._blocks import ReplayRequest as ReplayRequest
from skbandit.logs._blocks import ReplaysLogs as ReplaysLogs
from skbandit.logs._blocks import SeenIds as SeenIds
from skbandit.logs._blocks import as_blocks as as_blocks
from skbandit.logs._blocks import check_block_arms as check_block_arms
from skbandit.logs._blocks import noting as noting
from skbandit.logs._blocks import read_block as read_block
from skbandit.logs._blocks import read_table as read_table
from skbandit.logs._blocks import sum_over_blocks as sum_over_blocks
from skbandit.logs._cost_tables import MAX_COST as MAX_COST
from skbandit.logs._cost_tables import read_cost_values as read_cost_values
from skbandit.logs._cost_tables import warn_if_rewards as warn_if_rewards
from skbandit.logs._cost_tables import warn_of_shared_columns as warn_of_shared_columns
from skbandit.logs._log import NO_REWARDS as NO_REWARDS
from skbandit.logs._log import Log as Log
from skbandit.logs._log import as_actions as as_actions
from skbandit.logs._log import check_in_order as check_in_order
from skbandit.logs._log import column_names as column_names
from skbandit.logs._log import columns_of as columns_of
from skbandit.logs._log import count_actions as count_actions
from skbandit.logs._log import is_log as is_log
from skbandit.logs._log import read_log as read_log
from skbandit.logs._log import read_numbers as read_numbers
from skbandit.logs._log import read_times as read_times
from skbandit.logs._log import times_already_read as times_already_read
from skbandit.logs._log import times_as_series as times_as_series
from skbandit.logs._records import join_rewards as join_rewards
from skbandit.logs._records import make_record as make_record
from skbandit.logs._records import warn_if_equal as warn_if_equal
from skbandit.logs._reward_models import LoggedSlates as LoggedSlates
from skbandit.logs._reward_models import check_propensities as check_propensities
from skbandit.logs._reward_models import check_weights as check_weights
from skbandit.logs._reward_models import cross_fitted_rewards as cross_fitted_rewards
from skbandit.logs._reward_models import dr_costs as dr_costs
from skbandit.logs._reward_models import ips_costs as ips_costs
from skbandit.logs._reward_models import offset_costs as offset_costs
from skbandit.logs._reward_models import shrunk_weights as shrunk_weights
from skbandit.logs._reward_models import snips_costs as snips_costs
from skbandit.logs._slates import SlateLog as SlateLog
from skbandit.logs._slates import are_slates as are_slates
from skbandit.logs._slates import check_shown as check_shown
from skbandit.logs._slates import code_slates as code_slates
from skbandit.logs._slates import entries_per_slate as entries_per_slate
from skbandit.logs._slates import holds_slates as holds_slates
from skbandit.logs._slates import read_slates as read_slates
from skbandit.logs._slates import slate_labels as slate_labels
from skbandit.logs._uniform import check_uniform as check_uniform
from skbandit.logs._uniform import find_dependence_of_pools as find_dependence_of_pools
from skbandit.logs._uniform import is_far as is_far

__all__ = ["join_rewards"]
