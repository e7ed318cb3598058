"""The public names of a class: those that completion offers, and errors for names that only OpenVINO's API has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NoReturn


class PublicNames:
    """The base of classes that other packages of ovir use as well as users."""

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()
    """The names that are for other packages of ovir only; ``dir`` leaves them out."""
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """The counterparts in ovir of names of OpenVINO's API, by name."""

    def __init_subclass__(cls) -> None:
        """Explain the names of OpenVINO's API, each by itself: ``__getattr__`` would slow down all other attributes."""
        for name, way in vars(cls).get("_elsewhere", {}).items():
            setattr(cls, name, _Elsewhere(name, way))

    def __dir__(self) -> Iterable[str]:
        """Return the names that users need, which completion offers."""
        return [name for name in super().__dir__() if name not in self._internal and name not in self._elsewhere]


class _Elsewhere:
    """An attribute that a class lacks and OpenVINO's API has."""

    def __init__(self, name: str, way: str) -> None:
        self._name = name
        self._way = way

    def __get__(self, instance: object, owner: type) -> NoReturn:
        """Raise AttributeError, which says how ovir does the same."""
        message = f"{owner.__name__!r} object has no attribute {self._name!r}: use {self._way}"
        raise AttributeError(message, name=self._name, obj=instance)
