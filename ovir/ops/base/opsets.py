"""The operation version for a layer's type and version: OpenVINO's opsets, and extensions, which are in none.

The classes declare their opsets by ``@operator``; ``ovir/ops/base/index.py`` lists them.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ovir.diagnostics.wording import closest
from ovir.ops.base.index import VERSIONS


class Version(NamedTuple):
    """One version of an operation, as the index lists it."""

    type: str
    opset: int
    """The opset that introduced the version."""
    opsets: str
    """The opsets that hold the version, such as ``1,3-16``."""
    is_extension: bool
    """Whether the opset names ``extension`` and ``experimental`` mean this version, too, as in OpenVINO."""
    module: str
    """The module of the class in ``ovir.ops``."""
    functions: tuple[str, ...]
    """The names of the function that creates layers of the version."""

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the first and the last opset of each range of opsets that hold the version."""
        parts = [part.partition("-") for part in self.opsets.split(",")]
        return [(int(first), int(last or first)) for first, _, last in parts]


def _operations() -> dict[str, dict[int, Version]]:
    found: dict[str, dict[int, Version]] = {}
    for row in VERSIONS:
        version = Version(*row)
        found.setdefault(version.type, {})[version.opset] = version
    return found


OPERATIONS = _operations()
"""The versions of each operation, by type and by the opset that introduced them."""
NEWEST_OPSET = max(version.opset for versions in OPERATIONS.values() for version in versions.values())
_OPSETS = frozenset(f"opset{number}" for number in range(1, NEWEST_OPSET + 1))

_CANONICAL = {**{name.lower(): name for name in OPERATIONS if name != "Const"}, "constant": "Const"}
"""The usual spelling of a type, by its name in OpenVINO in lower case, which OpenVINO reads in any case. ``Const`` is
another name of ``Constant``, which it reads in no other case."""


def canonical_type(type_name: str) -> str | None:
    """Return the type in its usual spelling, or None if it is in no opset."""
    return type_name if type_name == "Const" else _CANONICAL.get(type_name.lower())


@cache
def _holders(type_name: str) -> dict[str, Version]:
    """Return the version of an operation that each opset holds, by the name of the opset."""
    found: dict[str, Version] = {}
    for version in OPERATIONS[type_name].values():
        names = [f"opset{n}" for first, last in version.ranges for n in range(first, last + 1)]
        found.update(dict.fromkeys(names, version))
        if version.is_extension:
            found.update(extension=version, experimental=version)
    return found


def resolve(type_name: str, version: str) -> Version | None:
    """Return the operation version that a file means, or None if the opset lacks the operation."""
    name = canonical_type(type_name)
    return None if name is None else _holders(name).get(version)


def is_opset(version: str) -> bool:
    """Return whether a file's version names an existing opset."""
    return version in _OPSETS


def why_unresolved(type_name: str, version: str) -> tuple[str, str | None]:
    """Return a sentence that explains why ``resolve`` found nothing, and a hint about what may be meant."""
    name = canonical_type(type_name)
    if not is_opset(version):
        usual = version.strip().lower()
        note = f"did you mean {usual}? OpenVINO reads it in this spelling only" if is_opset(usual) else None
        return f"'{version}' is not an opset: known are opset1 to opset{NEWEST_OPSET}", note
    if name is None:
        meant = closest(type_name.lower(), _CANONICAL, cutoff=0.75)
        hint = f"did you mean {_CANONICAL[meant]}?" if meant else None
        return f"no opset has an operation '{type_name}'", hint
    ranges = [opset_range(*ends) for known in OPERATIONS[name].values() for ends in known.ranges]
    return f"{version} does not contain {name}; it is in {', '.join(ranges)}", None


def opset_range(first: int, last: int) -> str:
    """Return the words for opsets from ``first`` to ``last``, which may be the same one."""
    return f"opset{first}" if last == first else f"opset{first} to opset{last}"


_EXTENSION_VERSIONS = {"extension", "experimental", "openvino_tokenizers"}


TOKENIZERS = (
    "BPETokenizer",
    "ByteFallback",
    "BytesToChars",
    "CaseFold",
    "CharsMapNormalization",
    "CharsToBytes",
    "CombineSegments",
    "EqualStr",
    "FuzeRagged",
    "NormalizeUnicode",
    "RaggedToDense",
    "RegexNormalization",
    "RegexSplit",
    "SentencepieceDetokenizer",
    "SentencepieceStreamDetokenizer",
    "SentencepieceTokenizer",
    "SpecialTokensSplit",
    "StringTensorPack",
    "StringTensorUnpack",
    "TrieTokenizer",
    "Truncate",
    "UTF8Validate",
    "UnigramTokenizer",
    "VocabDecoder",
    "VocabEncoder",
    "WordpieceTokenizer",
)
"""The operations of openvino_tokenizers that ``ovir.tokenizers`` registers, with the version ``extension``."""

_OF_TOKENIZERS = frozenset(name.lower() for name in TOKENIZERS)


def is_of_tokenizers(type_name: str, version: str) -> bool:
    """Return whether ``ovir.tokenizers`` registers an operation."""
    return version.lower() == "extension" and type_name.lower() in _OF_TOKENIZERS


def is_extension(type_name: str, version: str) -> bool:
    """Return whether a layer's type and version name an operation of an extension.

    Extensions choose their own version. A version that is not an opset, of a type that is in no opset, is such a
    choice; ``ReLU`` with version ``1`` is a wrong version.
    """
    version = version.lower()
    if version in _EXTENSION_VERSIONS:
        return resolve(type_name, version) is None
    return canonical_type(type_name) is None and not version.startswith("opset") and not version.isdecimal()
