"""Start web workers on one port and a learner, again whenever one ends: `python serve.py`."""

import argparse
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import get_context
from pathlib import Path

import uvicorn
from settings import start_log

LEARNER = [sys.executable, Path(__file__).with_name("learner.py"), "--parent", str(os.getpid())]
PAUSE_SECONDS = 0.1
BIND_SECONDS = 10
STOP_SECONDS = 5
FIRST_DELAY, LONGEST_DELAY = 1.0, 30.0
STEADY_SECONDS = 60.0
"""A process that has run for so long starts again at once."""

log = logging.getLogger("service")


def end_with(parent):
    """End this process when its parent has ended, even if that was killed."""

    def watch():
        while os.getppid() == parent:
            time.sleep(PAUSE_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Server(uvicorn.Server):
    """Says when it answers."""

    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        if self.started:
            host, port = sockets[0].getsockname()
            log.info("ready on http://%s:%d", host, port)


def work(bound, app, parent):
    """Serve until the end, in a process of its own."""
    start_log()
    end_with(parent)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    Server(config).run(sockets=[bound])


def bind(host, port):
    """Open the port, which workers of a process that was killed hold for a moment."""
    # asyncio sends responses at once (TCP_NODELAY) where the protocol is named. It is not by
    # `uvicorn --workers`, whose responses wait for 40 ms.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        try:
            bound.bind((host, port))
            return bound
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


class Child:
    """A process that is started again when it ends, later and later if it ends soon."""

    def __init__(self, name, start):
        self.name, self.start = name, start
        self.process, self.started = None, -STEADY_SECONDS
        self.due, self.delay = time.monotonic(), 0.0

    def look(self):
        """Start the process if it does not run and its time has come."""
        now = time.monotonic()
        if self.process is not None:
            status = exit_status(self.process)
            if status is None:
                return
            if now - self.started > STEADY_SECONDS:
                self.delay = 0.0
            cause = f"signal {-status}" if status < 0 else f"status {status}"
            log.warning("%s ended with %s: starts again in %g s", self.name, cause, self.delay)
            self.process, self.due = None, now + self.delay
            self.delay = min(max(FIRST_DELAY, 2 * self.delay), LONGEST_DELAY)
        if now >= self.due:
            self.process, self.started = self.start(), now
            log.info("%s starts: process %d", self.name, self.process.pid)

    def stop(self):
        if self.process is not None:
            self.process.terminate()

    def wait(self):
        if self.process is not None:
            learner = isinstance(self.process, subprocess.Popen)
            self.process.wait() if learner else self.process.join()


def exit_status(process):
    """Status with which a process has ended, negative for a signal; None while it runs."""
    return process.poll() if isinstance(process, subprocess.Popen) else process.exitcode


def main(host, port, workers, app):
    start_log()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    bound = bind(host, port)

    def start_worker():
        worker = get_context("spawn").Process(target=work, args=(bound, app, os.getpid()))
        worker.start()
        return worker

    children = [Child(f"worker {k + 1}", start_worker) for k in range(workers)]
    children.append(Child("the learner", lambda: subprocess.Popen(LEARNER)))
    try:
        while True:
            for child in children:
                child.look()
            time.sleep(PAUSE_SECONDS)
    except KeyboardInterrupt:
        pass
    finally:
        for child in children:
            child.stop()
        for child in children:
            child.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--app", default="app:app")
    main(**vars(parser.parse_args()))
