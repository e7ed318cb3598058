"""The public names of a class: those that completion offers, and errors for names that only OpenVINO's API has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar


class PublicNames:
    """The base of classes that other packages of ovir use as well as users."""

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()
    """The names that are for other packages of ovir only; ``dir`` leaves them out."""
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """The counterparts in ovir of names of OpenVINO's API, by name."""

    def __dir__(self) -> Iterable[str]:
        """Return the names that users need, which completion offers."""
        return [name for name in super().__dir__() if name not in self._internal]

    if not TYPE_CHECKING:  # type checkers would take every name to exist

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for a name of OpenVINO's API, it says how ovir does the same."""
            way = self._elsewhere.get(name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{message}: use {way}" if way else message, name=name, obj=self)
