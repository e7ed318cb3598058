"""Recipes, from which another process compiles a model again.

A recipe holds the topology, the options and, for operations of the user, where their classes are defined. Weights that
are in a file are named by its path; each process maps them, so that the processes of one machine share their memory.
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Protocol, Self
from uuid import uuid4
from weakref import WeakValueDictionary

from ovir.core.element_types import ElementType
from ovir.core.reading import open_regular, read_text
from ovir.diagnostics.errors import ReadError
from ovir.graph.layer_graph import LayerGraph
from ovir.ir.weights import Constant, FileVersion, WeightBytes
from ovir.ops.base.operator import Operator
from ovir.system.python_runtime import can_be_imported, load_module

Buffer = bytes | memoryview | pickle.PickleBuffer


class Compiled(Protocol):
    """A compiled model, as far as its recipe is concerned."""

    def with_own_state(self) -> Self:
        """Return a compiled model that shares all but the state with this one."""


@dataclass(frozen=True)
class PickledModel:
    """The data from which another process compiles a model. All recipes of one compiled model have one ``token``."""

    token: str
    content: bytes
    """A pickle of the class, the model and the options."""
    buffers: Sequence[Buffer] = ()
    """Large arrays of the pickle."""

    @classmethod
    def of(
        cls,
        kind: type[Compiled],
        model: LayerGraph,
        options: dict[str, Any],
        *,
        embedded: bool = False,
        token: str = "",
    ) -> PickledModel:
        """Return the recipe of a model that a class of compiled models compiles with these options.

        If it is ``embedded``, it holds the weights and the source code of the user's operations, too, for a process
        that has no access to their files.
        """
        file, buffers = BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(file, buffers, embedded).dump((kind, model, options))
        return cls(token or uuid4().hex, file.getvalue(), buffers)

    def compile(self) -> Compiled:
        """Compile the model; raise ReadError if a file is missing or has changed, ModelError if the model is wrong."""
        kind, model, options = pickle.loads(self.content, buffers=self.buffers)
        compiled: Compiled = kind(model, **options)
        return compiled

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "buffers": [bytes(buffer) for buffer in self.buffers]}

    # ----- files

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the recipe to a file, whose buffers processes share when they read it; raise OSError."""
        parts: list[bytes | memoryview] = [self.content, *(_raw(buffer) for buffer in self.buffers)]
        sizes = [len(part) for part in parts]
        with open(path, "wb") as file:
            file.write(self.token.encode() + struct.pack(f"<q{len(sizes)}q", len(sizes), *sizes))
            for part in parts:
                file.write(bytes(-file.tell() % _ALIGNMENT))
                file.write(part)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PickledModel:
        """Map a file that ``write`` has written; raise OSError."""
        with open_regular(path) as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        start = _TOKEN + 8
        (count,) = struct.unpack_from("<q", data, _TOKEN)
        parts = []
        sizes = struct.unpack_from(f"<{count}q", data, start)
        start += 8 * count
        for size in sizes:
            start += -start % _ALIGNMENT
            parts.append(data[start : start + size])
            start += size
        return cls(str(data[:_TOKEN], "ascii"), bytes(parts[0]), parts[1:])


_TOKEN = 32  # bytes of a token
_ALIGNMENT = 64


def _raw(buffer: Buffer) -> memoryview:
    return buffer.raw() if isinstance(buffer, pickle.PickleBuffer) else memoryview(buffer)


# --------------------------------------------------------------------------- opening

_MOST_OPEN = 4
"""The number of models that a process keeps open."""
_opened: OrderedDict[str, Compiled] = OrderedDict()
_originals: WeakValueDictionary[str, Compiled] = WeakValueDictionary()
_lock = threading.Lock()


def remember(token: str, compiled: Compiled) -> None:
    """Record the compiled model that a recipe was made of, so that its own process need not compile it again."""
    _originals[token] = compiled


def open_compiled(token: str, find: Callable[[], PickledModel]) -> Compiled:
    """Return the compiled model with a token; the latest few are kept open. ``find`` returns its recipe if it is not
    open."""
    with _lock:
        compiled = _originals.get(token) or _opened.get(token)
        if compiled is None:
            compiled = find().compile()
            while len(_opened) >= _MOST_OPEN:
                _opened.popitem(last=False)
            _opened[token] = compiled
        elif token in _opened:
            _opened.move_to_end(token)
        return compiled


def is_in_use(token: str) -> bool:
    """Return whether this process still holds the compiled model with a token."""
    return token in _opened or token in _originals


def restore(recipe: PickledModel) -> Compiled:
    """Return a compiled model from its pickle: it shares plans with others of the same origin, but no state."""
    return open_compiled(recipe.token, lambda: recipe).with_own_state()


# --------------------------------------------------------------------------- pickling


class _Pickler(pickle.Pickler):
    """Names weights by their place in a file, and operations of the user by theirs."""

    def __init__(self, file: BytesIO, buffers: list[pickle.PickleBuffer], embedded: bool) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self._embedded = embedded

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Constant and value.file is not None and not self._embedded:
            return _constant_in, (value.file, value.element_type, value.shape, value.offset, value.size)
        if isinstance(value, type) and issubclass(value, Operator) and not value.__module__.startswith("ovir."):
            return _class_reduction(value, self._embedded)
        return NotImplemented


def _constant_in(
    file: FileVersion, element_type: ElementType, shape: tuple[int, ...], offset: int, size: int
) -> Constant:
    return _weights(file).constant(element_type, shape, offset, size)


@lru_cache(8)
def _weights(file: FileVersion) -> WeightBytes:
    """Map a file of weights; raise ReadError unless it is as it was when the recipe was made."""
    weights = WeightBytes.open(file.path)
    if not file.is_same(weights.file):
        changed = file.overwritten() or "another file has their name"
        message = f"the weights have changed since the model was read: {changed}"
        raise ReadError.of_file(file.path, message)
    return weights


def _class_reduction(cls: type[Operator], embedded: bool) -> Any:
    """Return the place of a class for another process: a package, a file, or its code."""
    name = cls.__module__
    if name == "__main__":  # which is another program there
        if find_spec("cloudpickle") is None:
            return NotImplemented  # processes that multiprocessing starts import the same main module
        import cloudpickle

        return pickle.loads, (cloudpickle.dumps(cls),)
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None or can_be_imported(name):
        return NotImplemented
    source = read_text(path) if embedded else None
    return _class_in_file, (name, path, source, cls.__qualname__)


def _class_in_file(name: str, path: str, source: str | None, qualified_name: str) -> Any:
    found: Any = sys.modules.get(name)
    if found is None:
        if source is None and not os.path.isfile(path):
            raise ReadError.of_file(path, "the Python file with an operation is missing")
        found = load_module(name, path, source)
    for part in qualified_name.split("."):
        found = getattr(found, part)
    return found
