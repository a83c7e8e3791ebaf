"""Start web workers on one port, again whenever one ends: `python serve.py`."""

import argparse
import signal
import socket
import sys
import time
from multiprocessing import get_context

import uvicorn


def work(bound, app):
    """Serve until the end, in a process of its own."""
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[bound])


def main(host, port, workers, app):
    # asyncio sends responses at once (TCP_NODELAY) where the protocol is named. It is not by
    # `uvicorn --workers`, whose responses wait for 40 ms.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    processes = [None] * workers
    try:
        while True:
            for k, process in enumerate(processes):
                if process is None or not process.is_alive():
                    processes[k] = get_context("spawn").Process(target=work, args=(bound, app))
                    processes[k].start()
            time.sleep(0.1)
    except KeyboardInterrupt:
        pass
    finally:
        for process in filter(None, processes):
            process.terminate()
            process.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--app", default="app:app")
    main(**vars(parser.parse_args()))
