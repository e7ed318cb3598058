"""Processes of the stand-in for OpenVINO that start in milliseconds: forks of one that has imported everything."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.debugging.engines import child
from ovir.system.processes import ChildProcess

ROOT = Path(__file__).parents[2]
PATH_OF_STAND_IN = os.pathsep.join([str(ROOT / "tests" / "debugging" / "engines" / "stand_in"), str(ROOT)])
"""The PYTHONPATH of a process whose ``openvino`` is the stand-in."""
_MOST_BYTES = 1 << 18
"""The bytes of a request, at most: a folder and an environment."""


class _Fork(ChildProcess):
    """A process of an engine that another process has forked, which tells its number and then its status."""

    _child_created = False  # Popen does not wait for it

    def __init__(self, requests: socket.socket, messages: Any) -> None:
        (source, stdin), (stdout, answers), (told, tells) = os.pipe(), os.pipe(), os.pipe()
        socket.send_fds(
            requests,
            [pickle.dumps((os.getcwd(), dict(os.environ)))],
            [source, answers, messages.fileno(), tells],
        )
        for descriptor in (source, answers, tells):
            os.close(descriptor)
        self.stdin, self.stdout, self._told = open(stdin, "wb"), open(stdout, "rb"), open(told)  # noqa: SIM115
        self.returncode: int | None = None
        self.pid = int(self._told.readline())

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with self._told:
                self.returncode = int(self._told.readline())
        return self.returncode


@contextmanager
def starting_devices() -> Iterator[Callable[..., ChildProcess]]:
    """Yield what starts a process like ``ChildProcess``, but forks it if it is one of the stand-in."""
    requests, given = socket.socketpair(type=socket.SOCK_SEQPACKET)
    # A process whose linear algebra has threads cannot be forked.
    environment = {**os.environ, "PYTHONPATH": PATH_OF_STAND_IN, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, str(given.fileno())]

    def start(arguments: list[str], **options: Any) -> ChildProcess:
        if arguments == [sys.executable, "-P", child.__file__] and os.environ["PYTHONPATH"] == PATH_OF_STAND_IN:
            return _Fork(requests, options["stderr"])
        return ChildProcess(arguments, **options)

    with requests, given, ChildProcess(command, env=environment, pass_fds=[given.fileno()]):
        given.close()
        yield start
        requests.close()


def _serve(requests: socket.socket) -> None:
    """Fork this process for each request until no other can come."""
    x = ops.parameter([1], "f32")
    ovir.compile_model(ovir.Model([ops.tanh(x)], [x]))(np.ones(1, np.float32))  # this imports what devices need
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        content, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not content:
            return
        if os.fork() == 0:
            requests.close()
            _fork_device(*pickle.loads(content), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_device(folder: str, environment: dict[str, str], *descriptors: int) -> None:
    """Fork this process into a device, and tell how it ends."""
    *streams, tells = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    number = os.fork()
    if number == 0:
        os.setsid()
        os.write(tells, b"%d\n" % os.getpid())
        for i, stream in enumerate(streams):
            os.dup2(stream, i)
        for descriptor in descriptors:
            os.close(descriptor)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        child.main()
    for stream in streams:
        os.close(stream)
    os.write(tells, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
    os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
