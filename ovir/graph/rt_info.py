"""Runtime information: a small tree of elements that the writer of a file attached to a model, a layer or a port.

``RtInfo`` keeps tags, attributes, order, nesting and text as plain data, from which the same XML can be written. It is
also a read-only mapping, because most runtime information consists of names and values::

    model.rt_info["framework"]                                 # "onnx"
    model.rt_info["conversion_parameters", "input_model"]      # an entry of an entry
    layer.rt_info["fused_names"]                               # "conv1,relu1"
    model.rt_info.get("framework")                             # None where the file does not say
    model.rt_info.to_dict()

The entries of a model can be set, too (``ModelRtInfo``)::

    model.rt_info["model_info", "labels"] = ["cat", "dog"]
    del model.rt_info["model_info", "labels"]

Models, layers and ports without an ``<rt_info>`` have an empty one, ``NO_RT_INFO``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from ovir.diagnostics.errors import InputError

_NAMED = ("attribute", "custom", "info", "user_data")
"""Elements whose attribute ``name`` is the key of their entry."""


class RtElement(NamedTuple):
    """One element without its inner elements."""

    depth: int
    """The nesting depth; 0 for the ``<rt_info>`` element itself."""
    tag: str
    """The tag; with a namespace, it is written as ``{namespace}tag``."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Names and values, in the order of the file."""
    text: str = ""
    """The text between the start tag and the first inner element or the end tag."""
    tail: str = ""
    """The text after the end tag."""

    @property
    def key(self) -> str:
        """Return the key of this element's entry in the mapping."""
        if self.tag in _NAMED:
            return dict(self.attributes).get("name", self.tag)
        return self.tag


@dataclass(frozen=True)
class RtInfo(Mapping[str, "str | RtInfo"]):
    """The elements of an ``<rt_info>`` in the order of the file; immutable.

    They are stored as a flat sequence, so that no operation recurses, however deep the nesting is. As a mapping, it has
    one entry for each inner element. The key is the tag, or the ``name`` of an ``<attribute>``, ``<custom>``,
    ``<info>`` or ``<user_data>``. The value is the attribute ``value``, else the text, else an RtInfo of the inner
    elements. If several elements have the same key, the first one counts.
    """

    elements: tuple[RtElement, ...] = (RtElement(0, "rt_info"),)
    """The elements, each with its nesting depth, tag, attributes and text."""

    def __getitem__(self, key: str | tuple[str, ...]) -> str | RtInfo:
        """Return an entry; for a tuple of keys, an entry of an entry.

        Raises KeyError if there is none.
        """
        if isinstance(key, str):
            return self._entries[key]
        found: str | RtInfo = self
        for part in key:
            if isinstance(found, str):
                raise KeyError(key)
            found = found[part]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<RtInfo: {', '.join(self)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RtInfo) and self.elements == other.elements

    def __hash__(self) -> int:
        return hash(self.elements)

    def __reduce__(self) -> tuple[type[RtInfo], tuple[tuple[RtElement, ...]]]:
        return RtInfo, (self.elements,)  # the entries are left out because they may be nested deeply

    def with_marks(self, *marks: RtElement) -> RtInfo:
        """Return the same with these entries, in the order of keys, instead of those with the same keys."""
        root, *inner = self.elements or (RtElement(0, "rt_info"),)
        for mark in marks:
            inner = [item for item in inner if item.depth > 1 or item.key != mark.key]
            place = next((i for i, item in enumerate(inner) if item.depth == 1 and item.key > mark.key), len(inner))
            inner.insert(place, mark)
        return RtInfo((root, *inner))

    def with_entry(self, keys: Sequence[str], value: object) -> RtInfo:
        """Return the same with another value of an entry; None removes it, and the entries around it that become empty.

        Raises KeyError if there is nothing to remove, and InputError if an entry on the way has a text.
        """
        items = list(self.elements) or [RtElement(0, "rt_info")]
        start, end = 1, len(items)
        for depth, key in enumerate(keys, 1):
            inner = [i for i in range(start, end) if items[i].depth == depth]
            place = next((i for i in inner if items[i].key == key), None)
            if place is None:
                if value is None:
                    raise KeyError(tuple(keys))
                items[end:end] = _new_elements(keys[depth - 1 :], value, depth)
                return RtInfo(tuple(items))
            start, end = place + 1, next((i for i in inner if i > place), end)
            if depth < len(keys) and start == end and _has_text(items[place]):
                if value is None:
                    raise KeyError(tuple(keys))
                raise InputError.usage(f"'{'/'.join(keys[:depth])}' has a text, and no entry '{keys[depth]}'")
        if value is not None:
            *new, last = _new_elements(keys[-1:], value, len(keys))
            items[start - 1 : end] = [*new, last._replace(tail=items[start - 1].tail)]
            return RtInfo(tuple(items))
        place, depth = start - 1, len(keys)
        del items[place:end]
        while depth > 1 and items[place - 1].depth < depth and (place == len(items) or items[place].depth < depth):
            place, depth = place - 1, depth - 1
            del items[place]
        return RtInfo(tuple(items))

    def to_dict(self) -> dict[str, Any]:
        """Return the entries as nested dictionaries of texts."""
        result: dict[str, Any] = {}
        pending: list[tuple[RtInfo, dict[str, Any]]] = [(self, result)]
        while pending:
            info, target = pending.pop()
            for key, value in info.items():
                if isinstance(value, RtInfo):
                    target[key] = {}
                    pending.append((value, target[key]))
                else:
                    target[key] = value
        return result

    @cached_property
    def _entries(self) -> dict[str, str | RtInfo]:
        if not self.elements:
            return {}
        root, *inner = self.elements
        skipped = ("name", "version") if root.tag in _NAMED else ()
        entries: dict[str, str | RtInfo] = {name: text for name, text in root.attributes if name not in skipped}
        starts = [i for i, item in enumerate(inner) if item.depth == root.depth + 1]
        for start, end in pairwise([*starts, len(inner)]):
            entries.setdefault(inner[start].key, _value_of(tuple(inner[start:end])))
        return entries


def _value_of(elements: tuple[RtElement, ...]) -> str | RtInfo:
    first = elements[0]
    value = dict(first.attributes).get("value")
    if value is not None and len(elements) == 1:
        return value
    if len(elements) == 1 and (first.text.strip() or not first.attributes):
        return first.text
    return RtInfo(elements)


def _has_text(element: RtElement) -> bool:
    return bool(dict(element.attributes).get("value") or element.text.strip())


def _new_elements(keys: Sequence[str], value: object, depth: int) -> list[RtElement]:
    """Return the elements of an entry and of the groups around it; a mapping gives a group."""
    *groups, last = keys
    made = [_element(key, depth + i) for i, key in enumerate(groups)]
    pending: list[tuple[str, object, int]] = [(last, value, depth + len(groups))]
    while pending:
        key, item, level = pending.pop()
        if isinstance(item, Mapping):
            made.append(_element(key, level))
            pending += [(inner, item[inner], level + 1) for inner in reversed(list(item))]
        else:
            made.append(_element(key, level, (("value", _text(item)),)))
    return made


def _element(key: str, depth: int, attributes: tuple[tuple[str, str], ...] = ()) -> RtElement:
    if not isinstance(key, str) or not key:
        raise InputError.usage(f"expected a text as the name of runtime information, got {key!r}")
    if re.fullmatch(r"(?!xml)[A-Za-z_][\w.-]*", key, re.ASCII | re.IGNORECASE) and key not in _NAMED:
        return RtElement(depth, key, attributes)
    return RtElement(depth, "info", (("name", key), *attributes))


def _text(value: object) -> str:
    """Return a value as OpenVINO writes it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(_text, value))
    raise InputError.usage(f"runtime information holds texts, numbers, and lists and mappings of them, got {value!r}")


NO_RT_INFO = RtInfo(())
"""The runtime information of models, layers and ports without an ``<rt_info>``."""


def flat_entries(info: RtInfo, separator: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of all entries; an entry of an entry has the names of both, joined by a separator."""
    pending: list[tuple[str, str | RtInfo]] = list(info.items())[::-1]
    while pending:
        name, value = pending.pop()
        if isinstance(value, RtInfo):
            pending += [(f"{name}{separator}{key}", inner) for key, inner in list(value.items())[::-1]]
        else:
            yield name, value


DeferredRtInfo = Callable[[], RtInfo]
"""A function that makes an RtInfo on demand, because a file may have one for every layer and few are read."""


class Holder(Protocol):
    """An object whose runtime information can be replaced."""

    rt_info_data: RtInfo


class ModelRtInfo(RtInfo, MutableMapping[str, "str | RtInfo"]):
    """The runtime information that a model has now; setting or deleting an entry changes the model."""

    _holder: Holder

    def __init__(self, holder: Holder) -> None:
        object.__setattr__(self, "_holder", holder)

    @property
    def elements(self) -> tuple[RtElement, ...]:
        """Return the elements that the model has now."""
        return self._holder.rt_info_data.elements

    @property
    def _entries(self) -> dict[str, str | RtInfo]:
        return self._holder.rt_info_data._entries

    def __setitem__(self, key: str | tuple[str, ...], value: object) -> None:
        """Set an entry; a tuple of keys gives an entry of an entry, which is made if it is missing."""
        keys = (key,) if isinstance(key, str) else tuple(key)
        if value is None or not keys:
            raise InputError.usage(f"no runtime information {value!r} can be set for {key!r}; del removes an entry")
        self._holder.rt_info_data = self._holder.rt_info_data.with_entry(keys, value)

    def __delitem__(self, key: str | tuple[str, ...]) -> None:
        """Delete an entry, and the entries around it that become empty; raise KeyError if there is none."""
        self._holder.rt_info_data = self._holder.rt_info_data.with_entry((key,) if isinstance(key, str) else key, None)
