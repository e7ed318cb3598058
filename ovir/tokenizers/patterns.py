"""Patterns of PCRE2 and RE2, which the operations hold, for the package ``regex``."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

from ovir.diagnostics.errors import OperatorError, require_packages

_SPACE = r"\s\u180e"
r"""The characters that ``\s`` means in PCRE2: U+180E was one when these were defined, and PCRE2 keeps it."""
_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_TOKENS = re.compile(r"\\x\{([0-9A-Fa-f]+)\}|\\([pP])\{(\w+)\}|\\.|\[:\^?[a-z]+:\]|\[\^?\]?|.", re.DOTALL)
_CATEGORY = re.compile("[CLMNPSZ][a-z]?|Any")
_NEW_IN_UNICODE_18 = (
    "558 58B-58C 5C8-5C9 B53-B54 1ADE-1ADF 1AEC-1AF0 208F 209D-209F 20C2-20C4 2E60-2E63 A7DD A7E2 AB6C-AB6D "
    "107BB-107BF 10EC9-10ECF 10ED9-10EEE 10EF0-10EF9 11B0A 11DF0-11DF1 1246F 12475-1247F 12550-12686 "
    "18CD6-18CDA 18D1F-18D20 18E00-19191 191A0-191D2 1B123-1B128 1B168 1CED2-1CED4 1CEDD-1CEDF 1CEF1-1CEFD "
    "1D127-1D128 1D1EB-1D1FF 1D250-1D281 1D6A6 1DB00-1DB1C 1DF1F-1DF24 1DF2B-1DF81 1DF90-1DF96 1DFCD-1DFFF "
    "1F1AE 1F6D9 1F7DA-1F7DB 1F7F1-1F7FF 1FA8B-1FA8D 1FACC 1FADD 1FAEB 1FAF9-1FAFA 2B81E 3D000-3FC3F"
)


def _class_of(ranges: str) -> str:
    ends = (part.partition("-") for part in ranges.split())
    return "".join(f"{chr(int(first, 16))}-{chr(int(last or first, 16))}" for first, _, last in ends)


_NEWER = re.compile(f"[{_class_of(_NEW_IN_UNICODE_18)}]")
_UNASSIGNED = "\u0378"


def known(text: str) -> str:
    """Return a text to match, with an unassigned character for those that PCRE2, with Unicode 17, does not know yet."""
    return _NEWER.sub(_UNASSIGNED, text) if not text.isascii() else text


@lru_cache(maxsize=256)
def pcre(pattern: str) -> Any:
    """Return a pattern of PCRE2, with Unicode properties, as a pattern of ``regex``.

    Raises OperatorError if there is none.
    """
    outside = {
        r"\s": f"[{_SPACE}]",
        r"\S": f"[^{_SPACE}]",
        r"\w": f"[{_WORD}]",
        r"\W": f"[^{_WORD}]",
        r"\h": r"[\p{Zs}\t\u180e]",
    }
    inside = {r"\s": _SPACE, r"\w": _WORD, "[:space:]": _SPACE, "[:punct:]": r"\p{P}$+<=>^`|~"}
    return _compiled(pattern, outside, inside)


@lru_cache(maxsize=256)
def re2(pattern: str) -> Any:
    """Return a pattern of RE2, whose classes are ASCII, as a pattern of ``regex``."""
    space = r"\t\n\f\r "
    return _compiled(pattern, {r"\s": f"[{space}]", r"\S": f"[^{space}]"}, {r"\s": space})


def _compiled(pattern: str, outside: dict[str, str], inside: dict[str, str]) -> Any:
    require_packages("the tokenizer", "tokenizers", "regex")
    import regex

    parts = []
    in_class = False
    for found in _TOKENS.finditer(pattern):
        token = found[0]
        if found[1] is not None:
            token = f"\\U{int(found[1], 16):08x}"
        elif found[2] is not None and not _CATEGORY.fullmatch(found[3]):
            token = f"\\{found[2]}{{Script_Extensions={found[3]}}}"
        elif token.startswith("[") and not in_class:
            in_class = True
        elif token.startswith("["):
            token = inside.get(token, token if token.startswith("[:") else "\\" + token)  # it stands for itself
        elif token == "]" and in_class:
            in_class = False
        else:
            token = (inside if in_class else outside).get(token, token)
        parts.append(token)
    try:
        return regex.compile("".join(parts))
    except regex.error as error:
        raise OperatorError(f"the pattern {pattern!r} cannot be used: {error}") from None


class Replacement:
    r"""A text that takes the place of matches, in which ``$1`` or ``\1`` stands for a group."""

    def __init__(self, template: str) -> None:
        parts = re.split(r"\$(?:\{(\w+)\}|(\d+)|(\$))", re.sub(r"\\([1-9])", r"$\1", template))
        self._first = parts[0]
        self._others = list(zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True))

    def __call__(self, match: Any, text: str) -> str:
        """Return what takes the place of a match in a text; raise LookupError for a group that is not part of it."""
        result = [self._first]
        for named, numbered, dollar, following in self._others:
            result += [dollar or _group(match, text, int(numbered) if numbered else named), following]
        return "".join(result)


def _group(match: Any, text: str, group: int | str) -> str:
    begin, end = match.span(group)
    if begin < 0:
        raise LookupError(group)
    return text[begin:end]


def replaced(pattern: Any, replacement: Replacement, text: str, count: int | None) -> str:
    """Return a text with its matches replaced, or the first ``count``; the text itself if a group has no match."""
    parts = []
    at = 0
    try:
        for match in islice(pattern.finditer(known(text)), count):
            parts += [text[at : match.start()], replacement(match, text)]
            at = match.end()
    except LookupError:
        return text
    return "".join([*parts, text[at:]])
