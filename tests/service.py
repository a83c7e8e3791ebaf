"""Starts the service of `examples/service` in processes of its own, and talks to it."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "examples" / "service"
START_SECONDS = 120  # numba may have to compile first


class Service:
    """Web workers and a learner on a folder, ended with the block."""

    def __init__(self, folder, app="app:app", workers=2, path=SERVICE, within=1.0):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.app, self.workers, self.path = Path(folder), app, workers, path
        self.within = within

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *raised):
        self.web.send_signal(signal.SIGTERM)
        try:
            self.web.wait(20)
        except subprocess.TimeoutExpired:
            self.web.kill()

    def start(self):
        """Start it, again if it was killed, and wait until it answers."""
        options = ["--workers", self.workers, "--port", self.port, "--app", self.app]
        self.web = self._start(SERVICE / "serve.py", *options)
        deadline = time.monotonic() + START_SECONDS
        while self.state() is None:
            assert self.web.poll() is None, (self.folder / "log.txt").read_text()
            assert time.monotonic() < deadline, "the service did not start"
            time.sleep(0.1)

    def kill_learner(self):
        """Kill -9."""
        for child in self._children(b"learner.py"):
            os.kill(child, signal.SIGKILL)

    def web_workers(self):
        """Ids of the processes that answer, which are started again if they end."""
        return self._children(b"spawn_main")

    def _children(self, command):
        children = Path(f"/proc/{self.web.pid}/task/{self.web.pid}/children").read_text().split()
        return [
            int(child)
            for child in children
            if command in Path(f"/proc/{child}/cmdline").read_bytes()
        ]

    def state(self):
        """What a worker says of its policy; None if none answers."""
        with suppress(OSError, asyncio.IncompleteReadError):
            return asyncio.run(self._ask_once("GET", "/state"))
        return None

    async def _ask_once(self, *request):
        client = Client(self.port)
        try:
            return (await client.ask(*request))[1]
        finally:
            client.close()

    def _start(self, *command):
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [str(self.path), str(SERVICE), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "SERVICE_FOLDER": str(self.folder),
            "SERVICE_WITHIN": str(self.within),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        with (self.folder / "log.txt").open("a") as log:
            return subprocess.Popen(
                [sys.executable, *map(str, command)],
                cwd=self.path,
                env=environment,
                stdout=log,
                stderr=log,
            )


class Client:
    """A connection that is kept open, and made again if it was lost."""

    def __init__(self, port):
        self.port, self.reader, self.writer, self.cut_off = port, None, None, 0

    async def insist(self, path, body):
        """Answer to a POST, which is sent again whenever the connection was cut off."""
        while True:
            try:
                status, answer = await self.ask("POST", path, body)
            except (OSError, asyncio.IncompleteReadError):
                self.cut_off += 1
                await asyncio.sleep(0.02)
                continue
            assert status == 200, answer
            return answer

    async def ask(self, method, path, body=None):
        """Status and JSON, or text; OSError or IncompleteReadError if there is no answer."""
        payload = b"" if body is None else json.dumps(body).encode()
        return await self.send(method, path, payload)

    async def send(self, method, path, payload):
        """The same for any bytes."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            )
            self.writer.write(head.encode() + payload)
            answer = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(answer.split("content-length:")[1].split("\r\n")[0])
            content = await self.reader.readexactly(length)
            is_json = "content-type: application/json" in answer
            return int(answer.split()[1]), json.loads(content) if is_json else content.decode()
        except BaseException:
            self.close()
            raise

    def close(self):
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
