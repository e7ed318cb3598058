import gc
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis  # noqa: F401 - before the freeze: it looks for the owners of what packages register with it
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `builder` and the like

from support import strict_numpy
from support.inference_contract import _inference_keeps_its_contract, _watched_inference  # noqa: F401 - fixtures of all tests
from support.kernel_contract import _kernels_keep_their_contract, _watched_kernels, calls_are_made_once  # noqa: F401 - fixtures of all tests
from support.packages import names_that_skip
from support.systems import lacking_elsewhere
from support.warm_devices import PATH_OF_STAND_IN, starting_devices

import ovir.tokenizers  # noqa: F401 - so that no test registers its operations in a registry that is put back
from ovir.debugging.engines import process
from ovir.system.processes import ChildProcess

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as nohup starts programs; the processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes that tests start, in any folder, import the ovir of this checkout, not one that is installed.
_ROOT = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])

np.where = strict_numpy.where

OF_OTHER_PROGRAMS = {"oracle", "browser", "cluster", "documents", "releases"}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Do not look for garbage while tests are collected, which takes a fifth of the time and finds nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start other programs as slow, and those that are skipped where a package is missing."""
    for item in items:
        skipping = names_that_skip(item.path)
        if skipping is None or (isinstance(item, pytest.Function) and not skipping.isdisjoint(_names_used_by(item))):
            item.add_marker(pytest.mark.packages)
        if not OF_OTHER_PROGRAMS.isdisjoint(mark.name for mark in item.iter_markers()):
            item.add_marker(pytest.mark.slow)
        if os.name != "posix" and isinstance(item, pytest.Function):
            what = lacking_elsewhere(inspect.getsource(item.function))
            if what is not None:
                item.add_marker(pytest.mark.skip(reason=f"this system lacks {what}"))


def pytest_collection_finish() -> None:
    """Leave all tests and modules out of later collections of garbage, which tests cause, and some of them measure."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _starting_devices() -> Iterator[Callable[..., ChildProcess]]:
    if sys.platform != "linux":
        yield ChildProcess
        return
    with starting_devices() as start:
        yield start


@pytest.fixture
def device(_starting_devices: Callable[..., ChildProcess], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let ``openvino`` be the stand-in; ``device.setenv("OVIR_TEST_FAULT", ...)`` gives it a fault."""
    monkeypatch.setenv("PYTHONPATH", PATH_OF_STAND_IN)
    monkeypatch.setattr(process, "ChildProcess", _starting_devices)
    return monkeypatch


def pytest_sessionfinish() -> None:
    """Let plugins see all objects: hypothesis warns of random generators that nothing seems to hold."""
    gc.unfreeze()


def _names_used_by(item: pytest.Function) -> list[str]:
    return [item.originalname, *item.fixturenames]
