"""An interrupt at any moment of a fit leaves the estimator as it was, fitted or not."""

import copy
import inspect
import pickle
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import skbandit
from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.reliability.fitted import FITS, NAMED_LOG, ROWS
from tests.reliability.public_calls import X
from tests.tiers import first

pytestmark = pytest.mark.filterwarnings("ignore")
OURS = str(Path(skbandit.__file__).parent)
COMPILED = ("_kernels.py", "_posterior.py", "_m_lowest_kernel.py", "_random.py", "_compiled.py")


class Interrupt:
    """Raises KeyboardInterrupt as the k-th function of the package is entered, like Ctrl-C."""

    def __init__(self, k):
        self.k, self.seen = k, 0

    def __enter__(self):
        self.before = sys.getprofile()
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(self.before)

    def __call__(self, frame, event, arg):
        if event != "call" or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # Python swallows what is raised as a generator is closed
        file = frame.f_code.co_filename
        # no signal is noticed inside compiled code
        if file.startswith(OURS) and not file.endswith(COMPILED):
            self.seen += 1
            if self.seen == self.k:
                sys.setprofile(self.before)
                raise KeyboardInterrupt


def n_calls(work):
    """How many functions of the package are entered."""
    with Interrupt(k=-1) as counter:
        work()
    return counter.seen


def state(estimator):
    """All but the path, which is drawn at random: of copies that learn the same it differs."""
    kept = {name: part for name, part in estimator.__getstate__().items() if name != "_path"}
    return pickle.dumps(copy.deepcopy(kept))


def interrupt_all_along(estimator, work, n, done=None):
    """Interrupt some work at many of its n calls, until one comes too late to stop it.

    Each of the others must leave the estimator as it was; `done` is the state after all of it.
    """
    before = state(estimator)
    for k in sorted({1, 2, 3, *np.linspace(4, n - 3, 12).astype(int).tolist(), n - 2, n - 1}):
        with suppress(KeyboardInterrupt), Interrupt(k) as interrupt:
            work(estimator)
        if state(estimator) != before:
            # what was computed once for the parameters is not called again
            late = interrupt.seen < k or k >= n - 2 or state(estimator) == done
            assert late, f"changed, though interrupted at call {k} of {n}"
            return
    work(estimator)


@pytest.mark.parametrize(
    ("name", "begun"),
    first(1, [(name, name != "full_policy") for name in sorted(FITS, key="policy".__ne__)]),
)
def test_fit(name, begun):
    fit = FITS[name]
    estimator = clone(fit.estimator)
    fit(clone(fit.estimator))  # what is compiled or imported on first use
    fresh = clone(fit.estimator)
    n = n_calls(lambda: fit(fresh))
    if begun:
        estimator.fit(X, fit.y[::-1], **dict(fit.metadata))
    interrupt_all_along(estimator, fit, n)
    answers, expected = fit.asked(estimator), fit.asked(fresh)
    for method in expected:
        np.testing.assert_array_equal(answers[method], expected[method])


EVENTS = {
    "known arms": NAMED_LOG,
    "new arms": NAMED_LOG.assign(action=NAMED_LOG["action"] + "!"),
    "one new arm at the end": NAMED_LOG.assign(action=[*NAMED_LOG["action"][1:], "late"]),
}


@pytest.mark.parametrize(
    ("events", "update_every", "covariance"),
    first(
        1,
        [
            ("known arms", 10, "diagonal"),
            ("new arms", None, "diagonal"),
            ("new arms", 10, "full"),
            ("one new arm at the end", None, "full"),
            ("one new arm at the end", 10, "diagonal"),
        ],
    ),
)
def test_partial_fit(events, update_every, covariance):
    """No event is learned by half, and none that waited is learned twice."""
    policy = GLMUCBPolicy(covariance=covariance, update_every=update_every, random_state=0)
    policy.fit(ROWS, NAMED_LOG.assign(timestamp=np.arange(60)))
    log = EVENTS[events].assign(timestamp=np.arange(60, 120))
    straight = copy.deepcopy(policy).partial_fit(ROWS, log)
    again = copy.deepcopy(policy)
    n = n_calls(lambda: again.partial_fit(ROWS, log))
    interrupt_all_along(policy, lambda one: one.partial_fit(ROWS, log), n, state(straight))
    assert state(policy) == state(straight)


@pytest.fixture
def alarm():
    """Set Ctrl-C, by the operating system, for so many seconds from now; count those that rang."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no interval timer")
    rang = []

    def ring(*_):
        rang.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield partial(signal.setitimer, signal.ITIMER_REAL), rang
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


BIG = make_bandit_log(8000, n_arms=10, n_features=10, random_state=0)
BIG_X, BIG_Y = BIG.X.to_numpy(), BIG.y


REAL = {
    "partial_fit": lambda policy: policy.partial_fit(BIG_X, BIG_Y),
    "replay": lambda policy: replay(policy, BIG_X, BIG_Y, random_state=0),
}


@pytest.mark.parametrize("n", first(1, [8, 20]))
@pytest.mark.parametrize("work", REAL)
def test_signals_of_the_operating_system(work, n, alarm):
    """At a random moment of a call, compiled code included, Ctrl-C is KeyboardInterrupt at once.

    A search turns other exceptions into a score of nan. Python and compiled code of others may
    swallow an interrupt, as in a finalizer: so some few are allowed to have no effect.
    """
    (set_alarm, rang), n_interrupted = alarm, 0
    policy = GLMUCBPolicy(covariance="full", random_state=0).fit(BIG_X[:200], BIG_Y[:200])
    before = state(policy)
    REAL[work](copy.deepcopy(policy))  # compiles
    begin = time.perf_counter()
    REAL[work](copy.deepcopy(policy))
    seconds = time.perf_counter() - begin
    for moment in np.random.default_rng(0).uniform(0.02, 0.6, n) * seconds:
        own = copy.deepcopy(policy)
        try:
            set_alarm(moment)
            REAL[work](own)
            set_alarm(0)
        except KeyboardInterrupt:
            n_interrupted += 1
            assert state(own) == before
    assert rang
    assert n_interrupted >= len(rang) - 1 - n // 40
