"""Strings normalized: patterns replaced, characters mapped to others."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ovir.core.arrays import Array
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers.base import STRINGS, StringOperator
from ovir.tokenizers.characters import CharacterTexts, code_points
from ovir.tokenizers.charsmap import CharacterMap, CompiledMap, Normalizer, unicode_map
from ovir.tokenizers.patterns import Replacement, pcre, replaced, replaced_alone, runs_of_classes

# --------------------------------------------------------------------------- patterns

_REWRITTEN = {
    r" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)": r"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))",
    r"(^)(.)": r"(^)([\s\S])",
    r"(^)(.+)": r"(^)([\s\S])",
}
"""Patterns of older files, and their replacements."""


_REPLACING = "pattern u8[...]; replacement u8[...]"


@register("RegexNormalization", version="extension")
class RegexNormalization(StringOperator):
    """Strings with each match of a pattern replaced, or only the first without ``global_replace``.

    Inputs are strings, optionally which of them are left as they are, the pattern, and the replacement, in which ``$1``
    stands for a group. A string stays as it is if a group that the replacement names has no match.
    """

    takes = (f"{STRINGS}; {_REPLACING}", f"{STRINGS}; skips boolean[Skips...]; {_REPLACING}")
    global_replace: bool = attribute(default=True)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return self.changed(inputs[:-2], self.prepared(RegexNormalization.normalizer, *inputs[-2:]))

    def normalizer(self, pattern: Array, template: Array) -> Callable[[bytes], bytes]:
        """Return the function that replaces the matches of a pattern in a string."""
        search = pattern.tobytes().decode()
        search = _REWRITTEN.get(search, search)
        compiled, replacement = pcre(search), Replacement(template.tobytes().decode())
        count = None if self.global_replace else 1
        classes = runs_of_classes(search)
        each = CharacterTexts(partial(replaced_alone, compiled, replacement))

        def normalize(text: bytes) -> bytes:
            return replaced(compiled, replacement, text, count)

        def normalize_each(text: bytes) -> bytes:
            try:
                codes = code_points(text)
            except UnicodeDecodeError:
                return normalize(text)
            return b"".join(each(codes))

        is_of_single = count is None and classes is not None and not any(repeats for _, repeats in classes)
        return normalize_each if is_of_single else normalize


# --------------------------------------------------------------------------- characters


@register("CharsMapNormalization", version="extension")
class CharsMapNormalization(StringOperator):
    """Strings with characters mapped as the normalizer of SentencePiece does it.

    The map is that of a normalization form, with ``case_fold`` in lower case, or the last input, as SentencePiece
    compiles it. In place of a byte that is not UTF-8 there is U+FFFD. ``remove_extra_whitespaces`` leaves one space
    where there are several and none at the ends, ``add_dummy_prefix`` puts one at the front, and
    ``escape_whitespaces`` writes U+2581 for spaces.
    """

    takes = (f"{STRINGS}; ?skips_or_map boolean|u8[Skips...]", f"{STRINGS}; skips boolean[Skips...]; map u8[...]")
    normalization_form: str = attribute(default="", choices=("", "identity", "nfc", "nfd", "nfkc", "nfkd"))
    add_dummy_prefix: bool = attribute(default=False)
    remove_extra_whitespaces: bool = attribute(default=True)
    escape_whitespaces: bool = attribute(default=False)
    case_fold: bool = attribute(default=False)
    nmt: bool = attribute(default=False)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        has_skips = len(inputs) > 3 and inputs[3].dtype == bool
        normalizer = self.prepared(CharsMapNormalization.normalizer, *inputs[3 + has_skips :])
        return self.changed(inputs[: 3 + has_skips], normalizer)

    def normalizer(self, *compiled: Array) -> Normalizer:
        """Return the function that normalizes a string."""
        self.require(self.normalization_form or compiled, "there is neither a normalization form nor a map")
        mapping: CharacterMap
        if self.normalization_form:
            mapping = unicode_map(self.normalization_form, self.case_fold)
        else:
            mapping = CompiledMap(compiled[0].tobytes())
        return Normalizer(mapping, self.add_dummy_prefix, self.remove_extra_whitespaces, self.escape_whitespaces)


@cache
def _plain_normalizer(form: str, case_fold: bool) -> Normalizer:
    """Return the function that maps the characters of a string, and leaves its spaces as they are."""
    return Normalizer(unicode_map(form, case_fold), False, False, False)


@register("NormalizeUnicode", version="extension")
class NormalizeUnicode(StringOperator):
    """Strings in a normalization form of Unicode. Unlike Unicode prescribes, marks are not put in their order."""

    takes = f"{STRINGS}; ?skips boolean[Skips...]"
    normalization_form: str = attribute(default="NFD", choices=("NFC", "NFD", "NFKC", "NFKD"))

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return self.changed(inputs, _plain_normalizer(self.normalization_form.lower(), False))


@register("CaseFold", version="extension")
class CaseFold(StringOperator):
    """Strings in lower case: all characters with ``encoding="utf-8"``, else only those of ASCII."""

    takes = f"{STRINGS}; ?skips boolean[Skips...]"
    encoding: str = attribute(default="", choices=("", "utf-8"))

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return self.changed(inputs, _plain_normalizer("identity", True) if self.encoding else bytes.lower)
