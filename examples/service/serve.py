"""Start web workers on one port and a learner, again whenever one ends: `python serve.py`."""

import argparse
import errno
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

LEARNER = [sys.executable, Path(__file__).with_name("learner.py"), "--parent", str(os.getpid())]
PAUSE_SECONDS = 0.1
BIND_SECONDS = 10
STOP_SECONDS = 5


def end_with(parent):
    """End this process when its parent has ended, even if that was killed."""

    def watch():
        while os.getppid() == parent:
            time.sleep(PAUSE_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(bound, app, parent):
    """Serve until the end, in a process of its own."""
    end_with(parent)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    uvicorn.Server(config).run(sockets=[bound])


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


def main(host, port, workers, app):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    bound = bind(host, port)
    processes, learner = [None] * workers, None
    try:
        while True:
            for k, process in enumerate(processes):
                if process is None or not process.is_alive():
                    processes[k] = get_context("spawn").Process(
                        target=work, args=(bound, app, os.getpid())
                    )
                    processes[k].start()
            if learner is None or learner.poll() is not None:
                learner = subprocess.Popen(LEARNER)
            time.sleep(PAUSE_SECONDS)
    except KeyboardInterrupt:
        pass
    finally:
        running = [process for process in (*processes, learner) if process is not None]
        for process in running:
            process.terminate()
        for process in running:
            process.wait() if process is learner else process.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--app", default="app:app")
    main(**vars(parser.parse_args()))
