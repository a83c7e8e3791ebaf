"""Threads that share a policy: nothing is lost or drawn twice, and readers see whole states."""

import copy
import os
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skbandit import GLMUCBPolicy
from skbandit.bandit._guard import lock_of
from tests.tiers import first
from tests.worlds import make_log


@pytest.fixture(autouse=True)
def switching():
    """Switch threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(*functions):
    """Run functions at once, and raise what they raise."""
    barrier = threading.Barrier(len(functions))

    def run(function):
        barrier.wait()
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(run, f) for f in functions]]


@pytest.mark.thorough
@pytest.mark.parametrize("unfitted", [False, True])
def test_no_event_is_lost(unfitted):
    rng = np.random.default_rng(0)
    policy = GLMUCBPolicy("linear", random_state=0)
    if not unfitted:
        policy.fit([[0.0, 0.0]], {"action": ["first"], "reward": [0.0]})
    n, threads = 60, 4

    def learn(number):
        for k in range(n):
            arm = f"{number}-{k % 20}"
            policy.partial_fit(rng.normal(size=(1, 2)), {"action": [arm], "reward": [k % 2]})

    in_threads(*(lambda number=number: learn(number) for number in range(threads)))
    assert policy.n_updates_.sum() == n * threads + (not unfitted)
    assert len(policy.arms_) == 20 * threads + (not unfitted)


def test_choices_of_threads_draw_different_numbers():
    """Each address of random numbers is used once, also while the policy learns."""
    X, _ = make_log()
    arms = [("arm", k) for k in range(1000)]
    policy = GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, arms=arms, random_state=0)
    x = X.to_numpy()[:1]
    policy.partial_fit(x, {"action": arms[:1], "reward": [0.0]})
    taken = []
    stream, take = policy._stream, policy._stream.take

    def counted(n, random_state):
        address = take(n, random_state)
        if n:
            taken.append(address)
        return address

    stream.take = counted

    def choose():
        for _ in range(100):
            policy.select(x)

    def learn():
        for k in range(100):
            policy.partial_fit(x, {"action": [arms[k]], "reward": [1.0]})

    in_threads(choose, choose, choose, learn)
    assert policy._stream is stream  # learning goes on with the same one
    assert sorted(t for _, t in taken) == list(range(300))


@pytest.mark.thorough
@pytest.mark.parametrize("covariance", first(1, ["diagonal", "full"]))
def test_readers_see_whole_states(covariance):
    """A reader's answers are those of some number of events, never of half an event.

    One weight per feature, all equal after any number of equal events: a half-written state would
    show as different ones.
    """
    d = 400 if covariance == "diagonal" else 40
    settings = {"covariance": covariance, "fit_intercept": False, "random_state": 0}
    policy = GLMUCBPolicy("linear", arms=["a", "b", "c"], **settings)
    x = np.full((1, d), 0.01)
    first, event = ({"action": ["a"], "reward": [reward]} for reward in (0.5, 1.0))
    reference = GLMUCBPolicy("linear", arms=["a", "b", "c"], **settings).partial_fit(x, first)
    policy.partial_fit(x, first)
    answers = {reference.decision_function(x)[0, 0]}
    for _ in range(100):
        reference.partial_fit(x, event)
        answers.add(reference.decision_function(x)[0, 0])
    done = threading.Event()

    def learn():
        for _ in range(100):
            policy.partial_fit(x, event)
        done.set()

    def read():
        seen = []
        while not done.is_set():
            seen.append(policy.decision_function(x)[0, 0])
            restored = pickle.loads(pickle.dumps(policy))
            assert restored.decision_function(x)[0, 0] in answers
        return seen

    _, seen, more = in_threads(learn, read, read)
    assert seen and more and set(seen) | set(more) <= answers


def test_readers_do_not_wait_for_a_long_fit():
    X, Y = make_log()
    policy = GLMUCBPolicy(random_state=0).fit(X, Y)
    before = policy.predict(X[:5]).tolist()
    with lock_of(policy):  # as during a fit
        (answer,) = in_threads(lambda: policy.predict(X[:5]).tolist())
        in_threads(lambda: policy.select(X[:5]), lambda: pickle.dumps(policy))
    assert answer == before


def test_locks_are_not_copied():
    policy = GLMUCBPolicy(arms=["a", "b"], random_state=0)
    with lock_of(policy):
        others = [copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]
        for other in others:
            in_threads(lambda other=other: other.partial_fit([[1.0]], ["a"], reward=[1.0]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork, in a process with threads
def test_a_fork_while_another_thread_learns():
    policy = GLMUCBPolicy(arms=["a", "b"], random_state=0)
    policy.partial_fit([[1.0]], ["a"], reward=[1.0])
    held, free = threading.Event(), threading.Event()

    def learn():
        with lock_of(policy):
            held.set()
            free.wait()

    thread = threading.Thread(target=learn)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        policy.partial_fit([[1.0]], ["b"], reward=[1.0])
        os._exit(0 if policy.n_updates_.sum() == 2 else 1)
    deadline, status = time.monotonic() + 20, (0, 0)
    while status[0] == 0 and time.monotonic() < deadline:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if status[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    free.set()
    thread.join()
    assert status == (child, 0)
