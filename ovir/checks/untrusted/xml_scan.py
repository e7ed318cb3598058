"""The bytes of an .xml: contents that its parser would hide from the rules, or that are out of proportion.

expat reads the file as a stream, so that neither its nesting nor its length takes memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers import expat

from ovir.checks.untrusted.texts import GROUPS, Texts, Where
from ovir.diagnostics.codes import NOT_UTF8, NOT_XML, OUT_OF_PROPORTION, XML_CONSTRUCT, Code
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural
from ovir.ir.weights import CHECKSUM

LONGEST_TEXT = 1 << 20
"""Characters of an attribute or a text."""
MOST_COMMENTS = 1 << 16
"""Characters of all comments together. Writers add none; people add some lines."""
MOST_WORDS = 1 << 20
"""Characters of all texts together, apart from sizes and from runtime information."""
DEEPEST = 160
"""Elements within each other; 32 nested bodies take 4 each."""
MOST_ATTRIBUTES = 1000
"""Attributes of one element."""
MOST_TAGS = 1000
"""Different tags; IR has some dozens, apart from runtime information."""
MOST_ELEMENTS = {
    "layer": 200_000,
    "edge": 1_000_000,
    **dict.fromkeys(("input", "output", "port", "dim", "data", "rt_info", "attribute"), 5_000_000),
}
"""Elements of one tag. A file with more takes any reader minutes."""
MOST_OTHERS = 100_000
"""Elements of all other tags together: those around bodies, and those of the runtime information."""


def scan(data: bytes, file: str) -> tuple[list[Diagnostic], bool]:
    """Return the diagnostics of the bytes of an .xml, at most one of each kind; and whether a reader takes too long.

    Bytes that expat refuses are an error, even if the reader accepts them: nothing behind that place was seen here.
    """
    scanned = _Scan(file)
    if (encoding := foreign_encoding(data)) is not None:
        message = f"the topology is in {encoding}; a scanner and a reader may see different texts in it"
        scanned.report(NOT_UTF8, "encoding", message, "save it as UTF-8", 1)
    scanned.parse(data)
    return [*scanned.found.values(), *scanned.texts.diagnostics(file)], scanned.is_endless


def foreign_encoding(data: bytes) -> str | None:
    """Return the encoding that a file declares, or that its first bytes show, unless it is UTF-8 or ASCII."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    declared = _DECLARATION.match(data)
    name = declared[1].decode("ascii", "replace") if declared else "utf-8"
    return None if name.lower() in ("utf-8", "utf8", "us-ascii", "ascii") else name[:40]


_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"<\0\0\0", "UTF-32"),
    (b"\0\0\0<", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"<\0", "UTF-16"),
    (b"\0<", "UTF-16"),
    (b"\x4c\x6f\xa7\x94", "EBCDIC"),
)
_DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']""")
_OWN_MARK = "ovir-weights"
"""The processing instruction with the checksum of the weights, which ovir writes."""


class _StopScanError(Exception):
    """Ends the scan."""


class _Scan:
    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[str, Diagnostic] = {}
        self.texts = Texts()
        self.path = [""]  # the tags of the elements around
        self.groups = 0  # how many of these elements are in one of GROUPS, or are one
        self.layer = _NO_LAYER  # the type and the version of the last layer
        self.text: list[str] = []  # the pieces of the text since the last tag
        self.length = 0  # of that text
        self.is_split = False  # whether there is a comment in that text
        self.comments = 0  # characters
        self.marks = 0
        self.words = 0  # characters of texts outside of sizes and runtime information
        self.is_endless = False  # whether the file takes any reader minutes
        self.counts: dict[str, int] = {}
        self.others = 0  # elements of tags that have no number of their own
        self.seen: set[int] = set()  # hashes of elements that were looked at
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.ordered_attributes = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = self._comment
        self.parser.ProcessingInstructionHandler = self._instruction
        self.parser.StartCdataSectionHandler = self._section
        self.parser.StartDoctypeDeclHandler = self._doctype

    def report(self, code: Code, kind: str, message: str, hint: str | None = None, line: int | None = None) -> None:
        place = Place(self.file, line if line is not None else self.parser.CurrentLineNumber)
        self.found.setdefault(kind, diagnose(code, message, place, hint=hint))

    def parse(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), _CHUNK):
                self.parser.Parse(data[start : start + _CHUNK], False)
                # expat begins again at an incomplete tag or comment with each chunk: the time would be quadratic
                if start + _CHUNK - max(self.parser.CurrentByteIndex, 0) > _LONGEST_TOKEN:
                    message = f"a tag, a comment or an instruction has more than {_LONGEST_TOKEN:,} bytes"
                    self.report(OUT_OF_PROPORTION, "text", message)
                    self._end_scan()
            self.parser.Parse(b"", True)
        except _StopScanError:
            return
        except (expat.ExpatError, LookupError, ValueError) as error:
            message = f"not well-formed XML: {error}; other readers may accept it and what follows"
            self.report(NOT_XML, "refused", message, "write the file again with OpenVINO")

    def _start(self, tag: str, attributes: list[str]) -> None:
        if self.text:
            self._report_split(f"the element <{tag}>")
        self._end_text()
        parent = self.path[-1]
        self.path.append(tag)
        self.counts[tag] = count = self.counts.get(tag, 0) + 1
        if tag not in MOST_ELEMENTS:
            self.others += 1
        if count > _FEWEST or self.others > MOST_OTHERS:
            self._report_count(tag, count)
        if self.groups or tag in GROUPS:
            self.groups += 1
        if tag == "layer":
            pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
            self.layer = pairs.get("type", ""), pairs.get("version", "")
        layer = self.layer if tag == "data" and parent == "layer" else _NO_LAYER
        key = hash((tag, parent, layer, not self.groups, len(self.path) > _DEEPEST_PATH, *attributes))
        if key not in self.seen:
            self.seen.add(key)
            self._look(attributes, Where(tag, self.parser.CurrentLineNumber, self.groups > 0, parent, layer))

    def _look(self, texts: Sequence[str], where: Where) -> None:
        """Look at an element that is unlike all before."""
        tag, attributes = where.tag, dict(zip(texts[::2], texts[1::2], strict=True))
        if len(self.path) > _DEEPEST_PATH:
            message = f"elements are nested more than {DEEPEST} deep"
            self.report(OUT_OF_PROPORTION, "depth", message, "no model needs such depth")
        if len(self.counts) > MOST_TAGS:
            self.report(OUT_OF_PROPORTION, "tags", f"the file has more than {MOST_TAGS:,} different tags")
            self._end_scan()
        if len(attributes) > MOST_ATTRIBUTES:
            message = f"<{tag}> has {plural(len(attributes), 'attribute')}, more than {MOST_ATTRIBUTES:,}"
            self.report(OUT_OF_PROPORTION, "attributes", message)
            if len(attributes) > _ENDLESS_ATTRIBUTES:
                self._end_scan()
        for key, value in attributes.items():
            if len(value) > LONGEST_TEXT:
                self._long(f"the attribute '{key}'", f" ({len(value):,})")
            if key == "xmlns" or ":" in key:
                self.report(XML_CONSTRUCT, "namespace", f"<{tag}> has the attribute '{key}' of a namespace", _NO_NEED)
            if _XINCLUDE in value:
                self.report(XML_CONSTRUCT, "xinclude", f"<{tag}> names XInclude, which reads other files", _NO_NEED)
        if ":" in tag:
            self.report(XML_CONSTRUCT, "namespace", f"<{tag}> is an element of a namespace", _NO_NEED)
        self.texts.look_at_element(attributes, where)

    def _report_count(self, tag: str, count: int) -> None:
        if tag in MOST_ELEMENTS:
            if count > (most := MOST_ELEMENTS[tag]):
                self.report(OUT_OF_PROPORTION, "count", f"the file has more than {most:,} <{tag}> elements")
        elif self.others > MOST_OTHERS:
            message = f"the file has more than {MOST_OTHERS:,} elements of other tags than layers, ports and edges have"
            self.report(OUT_OF_PROPORTION, "others", f"{message}, such as <{tag}>")

    def _end(self, tag: str) -> None:
        if tag == "dim" and not self.text:
            self.text.append("")  # a size that is missing
        self._end_text()
        self.path.pop()
        if self.groups:
            self.groups -= 1

    def _text(self, text: str) -> None:
        self.length += len(text)
        if self.length > LONGEST_TEXT:
            self._long("a text")  # which has not ended yet
        if self.text or not text.isspace():
            self.text.append(text)
            if self.is_split and not text.isspace():
                self._report_split("a comment")

    def _report_split(self, what: str) -> None:
        message = f"{what} is in the text of <{self.path[-1]}>, which some readers end there"
        self.report(XML_CONSTRUCT, "split", message, "remove it")

    def _end_text(self) -> None:
        """Look at the text between the last tag and this one, unless it is white space."""
        self.is_split = False
        self.length = 0
        if not self.text:
            return
        text = "".join(self.text)
        self.text.clear()
        tag = self.path[-1]
        if tag != "dim" and "rt_info" not in self.path:
            self.words += len(text)
            if self.words > MOST_WORDS:
                message = f"the texts of elements that have no text in IR have more than {MOST_WORDS:,} characters"
                self.report(OUT_OF_PROPORTION, "words", message)
        key = hash((tag, self.path[-2], self.groups > 0, text))
        if key not in self.seen:
            self.seen.add(key)
            where = Where(tag, self.parser.CurrentLineNumber, self.groups > 0, self.path[-2])
            self.texts.look_at_text(text, where)

    def _comment(self, text: str) -> None:
        self.comments += len(text)
        if self.comments > MOST_COMMENTS:
            message = f"the comments have more than {MOST_COMMENTS:,} characters"
            self.report(OUT_OF_PROPORTION, "comments", message, "no model needs them: remove them")
        if self.counts and len(self.path) == 1:
            message = f"a comment of {plural(len(text), 'character')} follows the model"
            self.report(XML_CONSTRUCT, "trailing", message, "remove it")
        self.is_split = True

    def _section(self) -> None:
        message = f"a CDATA section in <{self.path[-1]}>, which readers resolve differently"
        self.report(XML_CONSTRUCT, "section", message, "write the text without it")

    def _instruction(self, target: str, data: str) -> None:
        if target != _OWN_MARK:
            self.report(XML_CONSTRUCT, "instruction", f"the processing instruction <?{target}?>", _NO_NEED)
            return
        self.marks += 1
        if self.marks > 1 or CHECKSUM.fullmatch(f"<?{target} {data}?>".encode("utf-8", "surrogatepass")) is None:
            message = f"<?{target}?> holds something else than the size and the checksum of one .bin"
            self.report(XML_CONSTRUCT, "mark", message, "save the model again")

    def _doctype(self, name: str, system: str | None, public: str | None, has_declarations: int) -> None:
        if has_declarations:  # nothing of them is expanded here
            message = "the DOCTYPE has declarations, which readers resolve differently"
            self.report(NOT_XML, "refused", message, "remove it")
            raise _StopScanError

    def _end_scan(self) -> None:
        self.is_endless = True
        raise _StopScanError

    def _long(self, what: str, length: str = "") -> None:
        self.report(OUT_OF_PROPORTION, "text", f"{what} has more than {LONGEST_TEXT:,} characters{length}")


_FEWEST = min(MOST_ELEMENTS.values())
_DEEPEST_PATH = DEEPEST + 1
"""With the empty tag around the root."""
_NO_LAYER = ("", "")
_CHUNK = 1 << 20
_LONGEST_TOKEN = 1 << 24
"""Bytes of a tag with its attributes, a comment or an instruction."""
_ENDLESS_ATTRIBUTES = 20_000
"""Attributes of one element, for each of which readers search the others."""
_XINCLUDE = "http://www.w3.org/2001/XInclude"
_NO_NEED = "IR does not need it; other programs may obey it: remove it"
