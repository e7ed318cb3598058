"""Runtime information: a small tree of elements that the writer of a file attached to a model, a layer or a port.

``RtInfo`` keeps tags, attributes, order, nesting and text as plain data, from which the same XML can be written. It is
also a read-only mapping, because most runtime information consists of names and values::

    model.rt_info["framework"]                                 # "onnx"
    model.rt_info["conversion_parameters", "input_model"]      # an entry of an entry
    layer.rt_info["fused_names"]                               # "conv1,relu1"
    model.rt_info.get("framework")                             # None where the file does not say
    model.rt_info.to_dict()

Models, layers and ports without an ``<rt_info>`` have an empty one, ``NO_RT_INFO``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

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

    def __reduce__(self) -> tuple[type[RtInfo], tuple[tuple[RtElement, ...]]]:
        return RtInfo, (self.elements,)  # the entries are left out because they may be nested deeply

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


NO_RT_INFO = RtInfo(())
"""The runtime information of models, layers and ports without an ``<rt_info>``."""

DeferredRtInfo = Callable[[], RtInfo]
"""A function that makes an RtInfo on demand, because a file may have one for every layer and few are read."""
