"""Patterns of PCRE2 and RE2, which the operations hold, for the package ``regex``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ovir.diagnostics.errors import OperatorError, require_packages

_SPACE = r"\s\u180e"
r"""The characters that ``\s`` means in PCRE2: U+180E was one when these were defined, and PCRE2 keeps it."""
_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_TOKENS = re.compile(r"\\x\{([0-9A-Fa-f]+)\}|\\p\{Han\}|\\.|\[\^?\]?|\[:|:\]|\]|.", re.DOTALL)


@lru_cache(maxsize=256)
def pcre(pattern: str) -> Any:
    """Return a pattern of PCRE2, with Unicode properties, as a pattern of ``regex``; raise OperatorError if it is none."""
    outside = {
        r"\s": f"[{_SPACE}]",
        r"\S": f"[^{_SPACE}]",
        r"\w": f"[{_WORD}]",
        r"\W": f"[^{_WORD}]",
        r"\h": r"[\p{Zs}\t\u180e]",
    }
    inside = {r"\s": _SPACE, r"\w": _WORD}
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
    depth = 0
    for found in _TOKENS.finditer(pattern):
        token = found[0]
        if found[1] is not None:
            token = f"\\U{int(found[1], 16):08x}"
        elif token == r"\p{Han}":
            token = r"\p{Script_Extensions=Han}"
        elif token.startswith("["):
            if depth and not token.startswith("[:"):
                token = "\\" + token  # a bracket in a class stands for itself
            elif not depth:
                depth = 1
        elif token == "]" and depth:
            depth = 0
        else:
            token = (inside if depth else outside).get(token, token)
        parts.append(token)
    try:
        return regex.compile("".join(parts))
    except regex.error as error:
        raise OperatorError(f"the pattern {pattern!r} cannot be used: {error}") from None


def replacement(template: str) -> Callable[[Any], str]:
    """Return the function from a match to the text that replaces it; the template names groups as ``$1`` or ``\\1``.

    The function raises LookupError for a group that is not part of the match.
    """
    template = re.sub(r"\\([1-9])", r"$\1", template)
    parts = re.split(r"\$(?:\{(\w+)\}|(\d+)|(\$))", template)
    texts, names = parts[::4], list(zip(parts[1::4], parts[2::4], parts[3::4], strict=True))
    if not names:
        return lambda match: template

    def replace(match: Any) -> str:
        result = [texts[0]]
        for (named, numbered, dollar), text in zip(names, texts[1:], strict=True):
            result += ["$" if dollar else _group(match, named or numbered), text]
        return "".join(result)

    return replace


def _group(match: Any, name: str) -> str:
    value = match[int(name) if name.isdecimal() else name]
    if value is None:
        raise LookupError(name)
    return str(value)
