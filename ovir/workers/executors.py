"""Executors: our own pools of processes, executors of other libraries, and the differences between them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from time import monotonic
from typing import Any

from ovir.core import parallel
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, RunError, require_counts, require_packages
from ovir.system.interrupts import interrupting_nobody_else, temporary_folder, uninterrupted
from ovir.system.progress import stage
from ovir.workers.worker import SAFE_PATH, Answer, run_task, set_safe_path, start_process, this_process


class Workers:
    """The workers of an executor; without one, processes of this machine, which end when this is closed.

    ``workers`` is the number of processes of such a pool (default: one for each core).
    """

    def __init__(self, executor: Executor | None = None, workers: int | None = None) -> None:
        require_counts(workers=workers)
        if workers is not None and workers > _MOST_WORKERS:
            raise InputError.usage(f"must be at most {_MOST_WORKERS:,}, got {workers:,}", option="workers")
        if executor is not None and workers is not None:
            raise InputError.usage("workers is for a pool of ovir: give either workers or an executor")
        is_client = hasattr(executor, "get_executor")  # of dask; its futures are of another kind
        if executor is not None and (is_client or not callable(getattr(executor, "submit", None))):
            hint = "for a client of dask, give client.get_executor()"
            message = f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}"
            raise InputError.usage(message, hint=hint)
        self._given = executor
        self._pool: ProcessPoolExecutor | None = None
        self._idle_since: float | None = None
        """The time when a cluster was first seen without work."""
        self.size = _size_of(executor) if executor is not None else workers or parallel.available()
        """The number of workers."""

    def submit(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Future[list[Answer] | None]:
        """Submit a task; raise the error of the executor if it rejects it."""
        with uninterrupted(), _starting_processes():  # a pool makes semaphores first, and processes when it gets tasks
            if self._given is not None:
                return self._given.submit(run_task, function, items, this_process())
            if self._pool is None:
                self._pool = _new_pool(self.size)
            with _safe_path():
                return self._pool.submit(run_task, function, items, this_process())

    @property
    def is_own(self) -> bool:
        """Return whether the workers are processes of our own pool."""
        return self._given is None

    @property
    def are_of_dask(self) -> bool:
        """Return whether a cluster of dask has the workers, which it replaces itself."""
        return _dask_client(self._given) is not None

    def have_forgotten_tasks(self) -> bool:
        """Return whether a cluster works on nothing for long; call this while tasks run and nothing happens.

        dask may report nothing of a task whose worker died. Raise RunError if the cluster has lost all workers and gets
        no others.
        """
        client = _dask_client(self._given)
        if client is None or any(client.processing().values()):
            self._idle_since = None
            return False
        self._idle_since = self._idle_since or monotonic()
        if monotonic() - self._idle_since < _MOST_IDLE:
            return False
        if not client.nthreads():
            message = f"the cluster at {client.scheduler.address} has lost all its workers"
            raise RunError(diagnose(ENGINE, message))
        self._idle_since = None
        return True

    def replace(self) -> None:
        """Replace the workers after one has died, where the executor does not do so; the pool of the caller cannot be
        used again, so our own pool takes its place."""
        if not self.are_of_dask:
            self._given = None
            self.close()

    def close(self) -> None:
        """Stop our own processes at once; an executor of the caller goes on."""
        pool, self._pool = self._pool, None
        if pool is not None:
            end_pool(pool)


def is_death(error: BaseException) -> bool:
    """Return whether a future failed because a worker died."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"  # the latter is dask's


def is_cancelled(error: BaseException) -> bool:
    """Return whether a future failed because its executor was shut down, or lost its connection."""
    return isinstance(error, CancelledError) or type(error).__name__ in ("FutureCancelledError", "CommClosedError")


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Start processes in a ``with`` block, which do not get the Ctrl-C of the terminal."""
    with _safe_path():
        resource_tracker.ensure_running()  # otherwise it starts with the first process, and lets signals through again
    with interrupting_nobody_else():
        yield


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep processes that start in a ``with`` block from importing files of the current folder in place of Python's own
    modules; ``start_process`` gives them back the variable as it was."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        set_safe_path(before)


def refuse_start_in_child() -> None:
    """Stop this process if it is a worker that imports the main module, and that module starts workers again.

    Python would print the traceback of each worker; the process that has started them reports the reason once.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)


def _new_pool(size: int) -> ProcessPoolExecutor:
    main = sys.modules["__main__"]
    if not os.path.exists(getattr(main, "__file__", None) or os.curdir):  # as <stdin>, which processes cannot import
        del main.__file__
    # A fork would copy locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size, context, start_process, (os.environ.get(SAFE_PATH),))


def end_pool(pool: ProcessPoolExecutor) -> None:
    """Stop the processes of our own pool at once."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:  # they would finish their tasks first
        process.kill()
    for process in processes:
        process.join()


def _size_of(executor: Executor) -> int:
    """Return the number of workers of an executor; the number of cores if it does not tell."""
    client = _dask_client(executor)
    if client is not None:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            message = f"the cluster at {client.scheduler.address} has no workers"
            raise RunError(diagnose(ENGINE, message)) from None
        return sum(client.nthreads().values())
    for name in ("_max_workers", "num_workers"):  # of the standard library and loky; of mpi4py
        size = getattr(executor, name, None)
        if isinstance(size, int) and size > 0:
            return size
    return parallel.available()


def _dask_client(executor: Executor | None) -> Any:
    """Return the client of dask that an executor belongs to, None for other executors."""
    return getattr(executor, "_client", None) if type(executor).__module__.startswith("distributed.") else None


@contextmanager
def open_executor(*, dask: str | None = None, workers: int | None = None) -> Iterator[Executor | None]:
    """Yield the executor of a cluster: ``dask`` is the address of a scheduler, or ``"local"`` for a cluster of
    ``workers`` processes on this machine. Without ``dask``, there is no executor.

    Raise InputError if dask is not installed, RunError if the scheduler does not answer.
    """
    if dask is None:
        yield None
        return
    require_packages("--dask", "dask", "distributed")
    distributed = import_module("distributed")

    if dask == "local":
        with (
            _local_cluster(distributed, workers or parallel.available()) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client.get_executor()
        return
    if workers is not None:
        raise InputError.usage("workers is for processes of this machine; the cluster has its own")
    try:
        client = distributed.Client(dask, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        message = f"no scheduler of dask answers at {dask}: {error}"
        raise RunError(diagnose(ENGINE, message)) from None
    with client:
        yield client.get_executor()


@contextmanager
def _local_cluster(distributed: Any, size: int) -> Iterator[Any]:
    """Yield a cluster of ``size`` processes of this machine, which leaves nothing behind."""
    settings = {"distributed.scheduler.allowed-failures": _MOST_RETRIES}
    with temporary_folder() as folder, import_module("dask.config").set(settings, temporary_directory=str(folder)):
        # dask cannot stop half a cluster, and its workers would answer Ctrl-C with tracebacks.
        with stage("starting workers"), uninterrupted(), _starting_processes():
            cluster = distributed.LocalCluster(
                n_workers=size,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # any free port: None would ask for 8787, and warn where it is taken
                silence_logs=logging.CRITICAL,
            )
        try:
            cluster.adapt(minimum=size, maximum=size)  # starts others for workers that dask has given up
            yield cluster
        finally:
            with uninterrupted():
                cluster.close()


_MOST_WORKERS = 2**15
"""As many processes as systems have numbers for by default."""
_MOST_RETRIES = 2
"""The number of times that dask repeats a task whose worker has died."""
_PATIENCE = 10.0
"""Seconds to wait for a scheduler, and for its first worker."""
_MOST_IDLE = 30.0
"""Seconds in which a cluster may get other workers for those that it has lost, or send the results of its tasks."""
