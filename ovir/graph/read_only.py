"""Lists and dictionaries of a model that callers can read but not change.

They are lists and dictionaries to all that reads them. Every method that would change them raises InputError, because
the change would not reach the model.
"""

from __future__ import annotations

from typing import Any, NoReturn, SupportsIndex, TypeVar

from ovir.diagnostics.codes import USAGE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError

T = TypeVar("T")


class ReadOnlyList(list[T]):
    """A list that is derived from a model; copies of it are plain lists."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, (list(self),)


class ReadOnlyDict(dict[str, Any]):
    """The attributes of a layer; copies of it are plain dictionaries."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _refuse_list(self: object, *arguments: object, **keywords: object) -> NoReturn:
    message = "this list of a model cannot be changed"
    hint = "change a copy, list(...), or edit the model: Model.add_layer, Model.remove_layer"
    raise InputError(diagnose(USAGE, message, hint=hint))


def _refuse_dict(self: object, *arguments: object, **keywords: object) -> NoReturn:
    message = "the attributes of a layer cannot be changed: its operator has its own values"
    hint = "replace the layer by one with other attributes: Model.replace_layer"
    raise InputError(diagnose(USAGE, message, hint=hint))


_BOTH = ("clear", "pop", "__setitem__", "__delitem__")
_LIST = ("append", "extend", "insert", "remove", "reverse", "sort", "__iadd__", "__imul__")
_DICT = ("popitem", "setdefault", "update", "__ior__")

for _name in (*_BOTH, *_LIST):
    setattr(ReadOnlyList, _name, _refuse_list)
for _name in (*_BOTH, *_DICT):
    setattr(ReadOnlyDict, _name, _refuse_dict)
