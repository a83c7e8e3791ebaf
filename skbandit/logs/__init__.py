"""Read logged decisions: columns, arms, availability and time order; blocks; estimated rewards.

`join_rewards` is for users. The other names without an underscore are for other packages, which
import them from here.

`read_log` turns a log in any of its forms into a `Log` of plain arrays, in which arms are numbers;
`Codes` maps labels to these numbers. `available` is a boolean table with one column per arm, one
collection of labels per row, or one for all rows. `read_pools` reads it for policies, `read_mask`
for selectors, both after `align_rows`, which needs X as the user passed it.
"""

from types import ModuleType

from skbandit.logs._arm_models import *  # noqa: F403
from skbandit.logs._arms import *  # noqa: F403
from skbandit.logs._blocks import *  # noqa: F403
from skbandit.logs._cost_tables import *  # noqa: F403
from skbandit.logs._log import *  # noqa: F403
from skbandit.logs._records import *  # noqa: F403
from skbandit.logs._records import join_rewards
from skbandit.logs._reward_models import *  # noqa: F403
from skbandit.logs._slates import *  # noqa: F403
from skbandit.logs._uniform import *  # noqa: F403

__all__ = ["join_rewards"]


def __dir__() -> list[str]:
    return __all__


for _name, _value in list(vars().items()):  # modules that the files above import
    if isinstance(_value, ModuleType) and not _value.__name__.startswith("skbandit"):
        del globals()[_name]
