"""The syntax of PCRE2, with Unicode properties, translated to that of the package ``regex``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile

from ovir.diagnostics.errors import OperatorError

SPACE = r"\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
r"""The characters that ``\s`` means in PCRE2: U+180E was one when these were defined, and PCRE2 keeps it."""
_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_BLANK = r"\p{Zs}\t\u180e"
_ASCII = r"\x00-\x7f"
_ALL = r"\x00-\U0010ffff"
_FORMAT = (
    r"\xad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff"
    r"\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    r"\U000e0020-\U000e007f"
)
"""The characters of Cf that leave a mark on paper, or change one."""
_GRAPH = rf"\p{{L}}\p{{M}}\p{{N}}\p{{P}}\p{{S}}\p{{Co}}{_FORMAT}"

_CASED = r"\p{Lu}\p{Ll}\p{Lt}"
_IN_C = r"$@`\xa0-\ud7ff\ue000-\U0010ffff"
"""What names of C and C++ may contain as universal characters."""
_FOLDED = {
    _ASCII,
    _IN_C,
    _CASED,
    *(rf"\p{{{name}}}" for name in ("Lu", "Ll", "lower", "lowercase", "upper", "uppercase")),
}
"""The sets that have more characters in ``regex`` where case is ignored, and in PCRE2 the same."""

_ESCAPES = {"s": SPACE, "w": _WORD, "h": _BLANK, "v": r"\n-\r\x85\u2028\u2029", "d": r"\p{Nd}"}
"""The sets of characters with a letter of their own; its capital letter means all others."""
_POSIX = {
    "alpha": r"\p{L}", "lower": r"\p{Ll}", "upper": r"\p{Lu}", "alnum": r"\p{L}\p{N}", "space": SPACE, "word": _WORD,
    "digit": r"\p{Nd}", "blank": _BLANK, "cntrl": r"\p{Cc}", "graph": _GRAPH, "print": _GRAPH + r"\p{Zs}\u180e",
    "punct": r"\p{P}$+<=>\^`|~", "ascii": _ASCII, "xdigit": r"0-9A-Fa-f\uff10-\uff19\uff21-\uff26\uff41-\uff46",
}  # fmt: skip
_CATEGORIES = "C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
_PROPERTIES = {
    **{name.lower(): rf"\p{{{name}}}" for name in _CATEGORIES.split()},
    **dict.fromkeys(("lc", "l&"), _CASED), "any": _ALL, "ascii": _ASCII, "xan": r"\p{L}\p{N}",
    "xsp": SPACE, "xps": SPACE, "xwd": _WORD, "xuc": _IN_C,
}  # fmt: skip
_BINARY = frozenset(
    """ahex alpha alphabetic asciihexdigit cased caseignorable changeswhencasefolded changeswhencasemapped
    changeswhenlowercased changeswhentitlecased changeswhenuppercased ci cwcf cwcm cwl cwt cwu dash
    defaultignorablecodepoint dep deprecated di dia diacritic ebase ecomp emod emoji emojicomponent emojimodifier
    emojimodifierbase emojipresentation epres ext extendedpictographic extender extpict graphemebase graphemeextend
    graphemelink grbase grext grlink hex hexdigit idc idcontinue ideo ideographic ids idsb idsbinaryoperator idst
    idstart idstrinaryoperator joinc joincontrol loe logicalorderexception lower lowercase math nchar
    noncharactercodepoint patsyn patternsyntax patternwhitespace patws pcm prependedconcatenationmark qmark
    quotationmark radical regionalindicator ri sd sentenceterminal softdotted space sterm term terminalpunctuation
    uideo unifiedideograph upper uppercase variationselector vs whitespace wspace xidc xidcontinue xids xidstart
    """.split()  # noqa: SIM905 - one name a line would take a page
)
_OF_MANY_SCRIPTS = ("common", "zyyy", "inherited", "zinh", "qaai")
"""The values of the property Script for which PCRE2 does not look at Script_Extensions."""
_UNBOUNDED_FORMS = r"[*+]|\{\s*\d+\s*,\s*\}"

_ESCAPE = re.compile(
    r"""\\(?:
    Q(?P<quoted>.*?)(?:\\E|\Z) | (?P<ends>E)
    | x\{\s*(?P<hex>[0-9A-Fa-f]+)\s*\} | x(?P<short>[0-9A-Fa-f]{1,2}) | N\{U\+(?P<point>[0-9A-Fa-f]+)\}
    | o\{\s*(?P<octal>[0-7]+)\s*\} | (?P<zero>0[0-7]{0,2}) | c(?P<control>[ -~])
    | (?P<sign>[pP])(?:\{(?P<property>[^}]*)\} | (?P<category>[A-Za-z]))
    | k(?:\{\s*(?P<k1>\w+)\s*\} | <(?P<k2>\w+)> | '(?P<k3>\w+)') | g\{\s*(?P<g1>-?\w+)\s*\} | g(?P<g2>-?\d+)
    | (?P<number>[1-9]\d*) | (?P<other>.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_GROUP = re.compile(
    r"""\((?:\?(?:
    (?P<plain>[:=!>|]|<=|<!) | P?<(?P<name>[^\W\d]\w*)> | '(?P<name2>[^\W\d]\w*)' | P=(?P<again>\w+)\)
    | (?P<call>R|\d+)\) | (?:P>|&)(?P<call2>[^\W\d]\w*)\) | \#(?P<comment>[^)]*)\)
    | \((?P<condition>\d+|<\w+>)\) | (?P<on>\^?[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]*))?(?P<scope>[:)])
    ))?""",
    re.VERBOSE,
)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\s*(?P<least>\d*)\s*(?P<comma>,)?\s*(?P<most>\d*)\s*\})")
_POSIX_CLASS = re.compile(r"\[([:.=])(\^?)((?:(?!\1\])[^\\\]])*)\1\]")
_CONTROLS = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ASSERTIONS = {
    "b": rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    "B": rf"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
    "A": r"\A", "Z": r"(?=\n?\Z)", "z": r"\Z",
}  # fmt: skip
_LETTERS_I = "iIİı"
"""The letters that ``regex`` takes for each other regardless of case, of which PCRE2 pairs only the first two."""


class NoPattern(Exception):  # noqa: N818 - a result, which no user sees
    """PCRE2 refuses a pattern, for the reason in the message."""


@dataclass(frozen=True)
class _Set:
    """Characters by what stands for them in brackets, or all others."""

    inside: str
    others: bool = False
    is_cased: bool = False
    """Whether flags do not change that case counts."""

    def __str__(self) -> str:
        text = f"[{'^' if self.others else ''}{self.inside}]"
        return f"(?-i:{text})" if self.is_cased else text


@dataclass
class _Group:
    """An open group: its flags, and what has been opened in it to change them."""

    is_caseless: bool
    looks_behind: bool
    opened: list[str] = field(default_factory=list)


def translated(pattern: str) -> str:
    """Return a pattern of PCRE2 as a pattern of ``regex``.

    Raises NoPattern if PCRE2 refuses it, and OperatorError if it uses something that has no translation.
    """
    return _Translation(pattern).result()


def _character(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise NoPattern(f"there is no character U+{code:04X}")
    return chr(code)


def _literal(character: str) -> str:
    if character < " ":
        return f"\\x{ord(character):02x}"
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _property(name: str, others: bool) -> _Set:
    r"""Return the characters with a property, as ``\p{name}`` has it."""
    import regex

    plain = re.sub(r"[\s_-]", "", name).lower()
    if not plain:
        raise NoPattern("a property has no name")
    if plain.startswith("^"):
        plain, others = plain[1:], not others
    key, separator, value = plain.replace(":", "=").partition("=")
    if key in ("bc", "bidiclass") or (key.startswith("bidi") and not separator):
        raise OperatorError(f"a property of directions has no translation: {name!r}")
    if not separator and key in _PROPERTIES:
        return _Set(_PROPERTIES[key], others)
    if not separator and key in _BINARY:
        return _Set(rf"\p{{{key}}}", others)
    if separator and key not in ("sc", "script", "scx", "scriptextensions"):
        raise NoPattern(f"the property {name!r} is unknown")
    script = value if separator else key
    is_single = key in ("sc", "script") if separator else script in _OF_MANY_SCRIPTS
    inside = rf"\p{{{'Script' if is_single else 'Script_Extensions'}={script}}}"
    try:
        regex.compile(inside)
    except regex.error:
        raise NoPattern(f"the property {name!r} is unknown") from None
    return _Set(inside, others)


class _Translation:
    """One pattern, read from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._parts: list[str] = []
        self._groups = [_Group(False, False)]
        self._count = 0
        self._names: set[str] = set()
        self._references: list[int] = []
        self._repeatable = False

    def result(self) -> str:
        """Return the translation."""
        while self._at < len(self._text):
            self._next()
        if len(self._groups) > 1:
            raise NoPattern("a parenthesis is not closed")
        if max(self._references, default=0) > self._count:
            raise NoPattern(f"there is no group {max(self._references)}")
        self._close_flags()
        return "".join(self._parts)

    def _next(self) -> None:
        """Translate what begins here."""
        character = self._text[self._at]
        quantifier = _QUANTIFIER.match(self._text, self._at)
        if quantifier is not None and (quantifier["least"] != "" or quantifier["most"]):
            self._quantify(quantifier)
        elif character == "\\":
            self._escaped()
        elif character == "[":
            self._add(self._class())
        elif character == "(":
            self._open()
        elif character in "|)":
            self._at += 1
            if character == ")" and len(self._groups) == 1:
                raise NoPattern("a parenthesis is closed that is not open")
            opened = self._close_flags()
            self._parts += [character, *(opened if character == "|" else ())]
            if character == ")":
                self._groups.pop()
            self._repeatable = character == ")"
        else:
            self._at += 1
            self._add(character if character in ".^$" else self._exact(character))
            self._repeatable = character not in "^$"

    def _add(self, part: str) -> None:
        self._parts.append(part)
        self._repeatable = True

    def _exact(self, character: str) -> str:
        """Return what matches a character, in the case that holds here."""
        if self._groups[-1].is_caseless and character in _LETTERS_I:
            return f"(?-i:{'[iI]' if character in 'iI' else character})"
        return _literal(character)

    def _quantify(self, match: re.Match[str]) -> None:
        self._at = match.end()
        if not self._repeatable:
            raise NoPattern(f"{match[0]} repeats nothing")
        least, most = int(match["least"] or 0), int(match["most"] or 0)
        if max(least, most) > 65535 or (match["most"] and least > most):
            raise NoPattern(f"{match[0]} is not a number of times")
        if self._groups[-1].looks_behind and re.fullmatch(_UNBOUNDED_FORMS, match[0]):
            raise NoPattern(f"{match[0]} looks behind without limit")
        form = (
            match[0]
            if match["least"] is None
            else re.sub(r"\s", "", f"{{{least}{match['comma'] or ''}{match['most']}}}")
        )
        if self._text[self._at : self._at + 1] in ("+", "?"):
            form += self._text[self._at]
            self._at += 1
        self._parts.append(form)
        self._repeatable = False

    # ----- escapes

    def _escaped(self) -> None:
        match, item = self._escape()
        letter = match["other"]
        if isinstance(item, _Set):
            self._add(str(item))
        elif item is not None:
            for character in item:
                self._add(self._exact(character))
        elif letter in _ASSERTIONS:
            self._parts.append(_ASSERTIONS[letter])
            self._repeatable = False
        elif letter in ("R", "K"):
            self._add(f"\\{letter}")
        elif letter == "N":
            self._add(r"[^\n]")
        elif letter in ("C", "G", "X") or (letter == "g" and self._text.startswith(("<", "'"), self._at)):
            raise OperatorError(f"\\{letter} has no translation")
        elif match["number"] and int(match["number"]) > max(9, self._count) and (character := self._octal(match)):
            self._add(self._exact(character))
        elif (
            name := match["k1"] or match["k2"] or match["k3"] or match["g1"] or match["g2"] or match["number"]
        ) is None:
            raise NoPattern(f"{match[0]} means nothing")
        else:
            self._refer(name)

    def _refer(self, name: str) -> None:
        """Add what matches the text of a group again."""
        self._add(rf"\g<{self._group(name)}>")

    def _group(self, name: str) -> str:
        """Return the number or the name of a group, which must exist."""
        if name.lstrip("-").isdecimal():
            number = int(name) if name[0] != "-" else self._count + 1 + int(name)
            if number < 1:
                raise NoPattern(f"there is no group {name}")
            self._references.append(number)
            return str(number)
        if name not in self._names:
            raise NoPattern(f"there is no group {name!r} so far")
        return name

    def _escape(self) -> tuple[re.Match[str], _Set | str | None]:
        """Return an escape sequence, and the set or the characters that it means; None if it means something else."""
        match = _ESCAPE.match(self._text, self._at)
        if match is None:
            raise NoPattern("a backslash is at the end")
        self._at = match.end()
        kind, other = match.lastgroup, match["other"]
        if kind in ("quoted", "ends"):
            return match, match["quoted"] or ""
        if kind in ("hex", "short", "point"):
            return match, _character(int(match[kind], 16))
        if kind in ("octal", "zero"):
            return match, _character(int(match[kind], 8))
        if kind == "control":
            return match, chr(ord(match[kind].upper()) ^ 64)
        if kind in ("property", "category"):
            item = _property(match[kind], match["sign"] == "P")
            is_of_case = self._groups[-1].is_caseless and item.inside in (r"\p{Lu}", r"\p{Ll}", r"\p{Lt}")
            return match, self._set(_CASED if is_of_case else item.inside, item.others)
        if other is None:
            return match, None
        if other.lower() in _ESCAPES:
            return match, self._set(_ESCAPES[other.lower()], other.isupper())
        return match, _CONTROLS.get(other, None if other.isascii() and other.isalnum() else other)

    def _octal(self, match: re.Match[str]) -> str:
        """Return the character that the octal digits of an escape sequence mean; an empty text if there are none."""
        digits = "".join(takewhile("01234567".__contains__, match["number"][:3]))
        if not digits:
            return ""
        self._at = match.start() + 1 + len(digits)
        return _character(int(digits, 8))

    # ----- classes

    def _class(self) -> str:
        """Return what matches a class of characters in brackets."""
        if _POSIX_CLASS.match(self._text, self._at):
            raise NoPattern("a class of POSIX is outside of brackets")
        self._at += 1
        others = self._text.startswith("^", self._at)
        self._at += others
        start = self._at
        inside = ""
        apart: list[str] = []
        while self._at == start or not self._text.startswith("]", self._at):
            item = self._member()
            if item == "" and not inside and not apart:
                start = self._at
            is_range = self._text.startswith("-", self._at) and self._text[self._at + 1 : self._at + 2] not in ("]", "")
            if is_range and item != "":
                self._at += 1
                last = self._member()
                if isinstance(item, _Set) or isinstance(last, _Set):
                    raise NoPattern("a range of characters begins or ends with a set")
                if item[-1] > (last or item)[0]:
                    raise NoPattern(f"the range {item[-1]}-{last[0]} is out of order")
                inside += "".join(map(_literal, item)) + "".join(["-" + _literal(last[0]), *map(_literal, last[1:])])
            elif isinstance(item, str):
                inside += "".join(map(_literal, item))
            elif item.others or item.is_cased:
                apart.append(str(item))
            else:
                inside += item.inside
        self._at += 1
        return self._joined(inside, apart, others)

    def _member(self) -> _Set | str:
        """Return the next member of a class: a set, or characters that it lists."""
        if self._at >= len(self._text):
            raise NoPattern("a bracket is not closed")
        posix = _POSIX_CLASS.match(self._text, self._at)
        if posix is not None:
            self._at = posix.end()
            if posix[1] != ":" or posix[3] not in _POSIX:
                raise NoPattern(f"{posix[0]} is not a class of POSIX")
            return self._set(_POSIX[posix[3]], bool(posix[2]))
        if self._text[self._at] != "\\":
            self._at += 1
            return self._text[self._at - 1]
        match, item = self._escape()
        if item is not None:
            return item
        if match["number"]:
            if character := self._octal(match):
                return character
            self._at = match.start() + 2
            return match["number"][0]
        if match["other"] != "b":
            raise NoPattern(f"{match[0]} means nothing in brackets")
        return "\b"

    def _set(self, inside: str, others: bool) -> _Set:
        return _Set(inside, others, self._groups[-1].is_caseless and inside in _FOLDED)

    def _joined(self, inside: str, apart: list[str], others: bool) -> str:
        """Return what matches the characters of a class, or all others; those ``apart`` have own brackets."""
        if not inside and len(apart) == 1 and apart[0].startswith("["):
            return f"[{apart[0][2:]}" if others else apart[0]
        brackets = f"[{inside}]"
        if self._groups[-1].is_caseless and inside:
            brackets = _with_exact_i(brackets)
        if not apart and brackets == f"[{inside}]":
            return f"[^{inside}]" if others else brackets
        text = "|".join([*([brackets] if inside else []), *apart])
        return rf"(?:(?!{text})[{_ALL}])" if others else f"(?:{text})"

    # ----- groups

    def _open(self) -> None:
        """Open a group, or translate what only looks like one."""
        match = _GROUP.match(self._text, self._at)
        if match is None or self._text.startswith("(*", self._at):
            if re.compile(r"\(\*[A-Za-z:]").match(self._text, self._at):
                raise OperatorError("a verb (*...) has no translation")
            raise NoPattern("(* repeats nothing")
        if match[0] == "(" and self._text.startswith("(?", self._at):
            if re.compile(r"\(\?(?:C|\(|[+-]\d)").match(self._text, self._at):
                raise OperatorError(f"{self._text[self._at : self._at + 4]}... has no translation")
            raise NoPattern("(? begins nothing")
        self._at = match.end()
        kind = match.lastgroup
        if kind == "again":
            self._refer(match["again"])
        elif kind in ("call", "call2"):
            name = match["call"] or match["call2"]
            self._references.append(int(name) if name.isdecimal() else 0)
            self._add(f"(?{name if name == 'R' or name.isdecimal() else f'&{name}'})")
        elif kind == "scope":
            self._change_flags(match)
        elif kind != "comment":
            form = f"(?{match['plain']}" if kind == "plain" else "("
            if kind == "condition":
                form = f"(?({self._group(match[kind].strip('<>'))})"
            name = match["name"] or match["name2"]
            if name is not None:
                if name in self._names:
                    raise NoPattern(f"there are two groups {name!r}")
                self._names.add(name)
                form = f"(?P<{name}>"
            self._count += kind not in ("plain", "condition")
            self._push(form, self._groups[-1].is_caseless, match["plain"] in ("<=", "<!"))

    def _push(self, form: str, is_caseless: bool, looks_behind: bool = False) -> None:
        self._parts.append(form)
        self._groups.append(_Group(is_caseless, looks_behind or self._groups[-1].looks_behind))
        self._repeatable = False

    def _change_flags(self, match: re.Match[str]) -> None:
        """Set flags for a group, or for what follows in the group around."""
        on, off = match["on"], match["off"] or ""
        if on.startswith("^"):
            if match["off"] is not None:
                raise NoPattern(f"{match[0]} begins nothing")
            on = on[1:]
            off = "".join(flag for flag in "ims" if flag not in on)
        if unknown := [flag for flag in on + off if flag not in "ims"]:
            if unknown[0] in "xnJUarC":
                raise OperatorError(f"the flag {unknown[0]} has no translation")
            raise NoPattern(f"there is no flag {unknown[0]}")
        on = "".join(flag for flag in dict.fromkeys(on) if flag not in off)
        off = "".join(dict.fromkeys(off))
        form = f"(?{on}{'-' if off else ''}{off}:"
        is_caseless = "i" in on or (self._groups[-1].is_caseless and "i" not in off)
        if match["scope"] == ":":
            self._push(form, is_caseless)
            return
        group = self._groups[-1]
        group.opened.append(form)
        group.is_caseless = is_caseless
        self._parts.append(form)
        self._repeatable = False

    def _close_flags(self) -> list[str]:
        """Close what has been opened in the group to change flags; return it, for the next alternative."""
        opened = self._groups[-1].opened
        self._parts.append(")" * len(opened))
        return opened


def _with_exact_i(text: str) -> str:
    """Return a class that pairs the letters i as PCRE2 does where case is ignored."""
    import regex

    exact = {letter for letter in _LETTERS_I if regex.match(text, letter)}
    wanted = exact | {*"iI"} if exact & {*"iI"} else exact
    if wanted == {letter for letter in _LETTERS_I if regex.match(f"(?i:{text})", letter)}:
        return text
    own = f"|(?-i:[{''.join(sorted(wanted))}])" if wanted else ""
    return f"(?:(?!(?-i:[{_LETTERS_I}])){text}{own})"
