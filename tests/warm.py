"""Compile the loops that most tests need, before workers start: each would compile its own.

Machine code is cached on disk, so that this takes seconds unless a loop has changed, and one
process that compiles nothing if no file of the package has.

python -m tests.warm
"""

import hashlib
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import scipy

import skbandit
from skbandit import GLMUCBPolicy, RampClassifier, SharedGLMPolicy, SlatePolicy, replay
from skbandit.datasets import make_bandit_log
from skbandit.rates import error_rate, recall
from skbandit.utils._compiled import user_cache

KINDS = [
    {"link": link, "covariance": covariance}
    for link in ("logistic", "linear", "probit")
    for covariance in ("diagonal", "full")
]


def policies():
    """Learn from events, choose and replay, for each link and covariance."""
    log = make_bandit_log(300, n_arms=3, random_state=0)
    for kind in KINDS:
        policy = GLMUCBPolicy(**kind).fit(log.X, log.y)
        policy.partial_fit(log.X[:5], log.y[:5])
        policy.select(log.X[:5])
        replay(GLMUCBPolicy(**kind), log.X, log.y)
    for exploration in ("thompson", "squarecb", "epsilon_greedy", "greedy"):
        replay(GLMUCBPolicy(exploration=exploration), log.X, log.y)


def shared():
    """Learn one model of all arms, and slates."""
    log = make_bandit_log(300, n_arms=3, random_state=0)
    features = pd.DataFrame({"size": [0.0, 1.0, 2.0]}, index=[0, 1, 2])
    SharedGLMPolicy(features).fit(log.X, log.y).select(log.X[:5])
    SlatePolicy(n_select=2).fit(
        log.X, pd.DataFrame({"action": [(0, 1), (2, 0)] * 150, "reward": [(0, 1), (1, 0)] * 150})
    ).select(log.X[:5])


def solvers():
    """Fit a ramp by each compiled solver."""
    log = make_bandit_log(300, n_arms=3, random_state=0)
    X = log.X.to_numpy()
    labels = (X[:, 0] > 0).astype(int)
    for solver in ("newton", "cutting_plane"):
        RampClassifier(error_rate(), [recall() >= 0.8], solver=solver).fit(X, labels)


LOOPS = {function.__name__: function for function in (policies, shared, solvers)}


def sources():
    """Name the state of all that could shape machine code, and more."""
    texts = [path.read_bytes() for path in sorted(Path(skbandit.__file__).parent.rglob("*.py"))]
    versions = f"{sys.version} {numba.__version__} {np.__version__} {scipy.__version__}"
    parts = [versions.encode(), Path(__file__).read_bytes(), *texts]
    return hashlib.sha256(b"".join(parts)).hexdigest()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        LOOPS[sys.argv[1]]()
        sys.exit()
    folder, state = user_cache(), sources()
    place = folder and folder / "skbandit" / f"warm-{sys.implementation.cache_tag}"
    if place is None or not place.exists() or place.read_text() != state:
        commands = [[sys.executable, "-m", "tests.warm", name] for name in LOOPS]
        ended = [process.wait() for process in [subprocess.Popen(command) for command in commands]]
        if place is not None and not any(ended):
            with suppress(OSError):  # of a folder that cannot be written
                place.write_text(state)
