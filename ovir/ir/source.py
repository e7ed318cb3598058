"""Finds and opens the files of a model, and parses the .xml safely.

Every failure is a ReadError with a hint, or an InputError for an argument that is not a source.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from lxml import etree

from ovir.core.reading import read_bytes, similar_file
from ovir.diagnostics.codes import DOCTYPE, ENCODING, ENTITIES, LFS_POINTER, NOT_XML, TRUNCATED
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import Diagnostics, InputError, ReadError
from ovir.diagnostics.wording import reason_of
from ovir.ir.elements import SAFE, xml_parser
from ovir.ir.other_formats import other_format
from ovir.ir.weights import WeightBytes, WeightsMark, refuse_path_as_bytes
from ovir.system.files import older_files


class NewContent(NamedTuple):
    """The content that the .xml at a path is to get."""

    path: str
    data: bytes


Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | NewContent
"""The path of an .xml or of a folder with one, its content (a buffer, or a text that begins with ``<``), or an open
file."""


class Parsed(NamedTuple):
    """A parsed .xml."""

    root: etree._Element
    data: bytes
    name: str | None
    """The name of the file, if there is one."""
    mark: WeightsMark | None
    """The mark of the .bin that the file was saved with, if the file has one."""


def parse_xml(model: Source, diagnostics: Diagnostics) -> Parsed:
    """Parse a .xml; raise ReadError if it cannot be read.

    No entity is expanded and nothing is fetched.
    """
    content, name = content_of(model)
    encoding = "utf-8" if isinstance(content, str) else None  # a str is encoded here, whatever it declares
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if not data or data.isspace():
        raise ReadError.of_file(name, "the file is empty", 1)
    try:
        return Parsed(_parse(data, encoding, name, diagnostics), data, name, WeightsMark.find(data))
    except etree.XMLSyntaxError as error:
        actual = _actual_encoding(data) if encoding is None else None
        if actual is None:
            raise ReadError(_syntax_error(error, data, name)) from None
    try:
        root = _parse(data, actual.name, name, diagnostics)
    except etree.XMLSyntaxError as error:
        raise ReadError(_syntax_error(error, data, name)) from None
    hint = "declare the encoding of the file, or save it as UTF-8"
    diagnostics.report(ENCODING, actual.message, Place(name, actual.line), hint)
    return Parsed(root, data, name, WeightsMark.find(data))


def _parse(data: bytes, encoding: str | None, name: str | None, diagnostics: Diagnostics) -> etree._Element:
    _check_doctype(data, encoding, name, diagnostics)
    root = etree.fromstring(data, xml_parser(encoding))
    if b"xmlns" in data.replace(b"\0", b""):  # which turns UTF-16 and UTF-32 into ASCII
        _drop_default_namespaces(root)
    return root


def _drop_default_namespaces(root: etree._Element) -> None:
    """Give elements without a prefix the plain names by which OpenVINO finds them, whatever ``xmlns="..."`` says."""
    plain = [element for element in root.iter() if element.prefix is None and str(element.tag)[0] == "{"]
    for element in plain:
        element.tag = etree.QName(element).localname
    if plain:
        etree.cleanup_namespaces(root)


@dataclass(frozen=True)
class _Encoding:
    """The encoding of a text that declares another encoding, and the message about it."""

    name: str
    message: str
    line: int


def _actual_encoding(data: bytes) -> _Encoding | None:
    """Return the encoding of a text that cannot be read as declared; None if its encoding is not the reason."""
    if b"\0" in data[:4]:
        return None  # UTF-16 or UTF-32, which the parser recognizes
    match = _DECLARED_ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
    declared = match[1].decode() if match is not None else None
    is_utf8 = declared is None or declared.lower() in ("utf-8", "utf8", "us-ascii", "ascii")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not is_utf8:
            return None
        line = data.count(b"\n", 0, error.start) + 1
        says = f"declares {declared}" if declared is not None else "declares no encoding"
        byte = f"byte 0x{data[error.start]:02x} is not UTF-8"
        return _Encoding("iso-8859-1", f"the file {says}, and {byte}; it is read as Latin-1", line)
    message = f"the file declares the encoding {declared}, but its text is UTF-8; it is read as UTF-8"
    return None if is_utf8 else _Encoding("utf-8", message, 1)


_DECLARED_ENCODING = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})["']""")


_CHUNK = 1 << 16


def content_of(model: Any) -> tuple[bytes | str, str | None]:
    """Return the content to parse, and the path of the file if there is one."""
    if isinstance(model, NewContent):
        return model.data, model.path
    if isinstance(model, str) and model.lstrip("\ufeff \t\r\n").startswith("<"):
        return model, None
    if isinstance(model, (str, os.PathLike)):
        name = _in_folder(os.fsdecode(model))
        try:
            return read_bytes(name), name
        except (OSError, ValueError) as error:
            reason = reason_of(error)
            hint = similar_file(name)
            if older := older_files([name, os.path.splitext(name)[0] + ".bin"]):
                reason = "saving the model was interrupted while its files were replaced"
                moves = " and ".join(f"{file} to {path}" for path, file in older.items())
                hint = f"save the model again, or move {moves}: this restores the older model"
            raise ReadError.of_file(name, f"cannot read the file: {reason}", hint=hint) from None
    if hasattr(model, "read") and isinstance(content := _rest(model), (bytes, str)):
        return content, _path_of(model)
    try:
        content = bytes(memoryview(model))
    except TypeError:
        message = f"a model must be a path, the content of an .xml or an open file, got {type(model).__name__}"
        raise InputError.usage(message) from None
    refuse_path_as_bytes(content)
    return content, None


def _in_folder(path: str) -> str:
    """Return the .xml of a folder, or the path of anything else; raise ReadError unless a folder has one .xml."""
    if not os.path.isdir(path):
        return path
    try:
        names = sorted(name for name in os.listdir(path) if name.lower().endswith(".xml"))
    except OSError as error:
        raise ReadError.of_file(path, f"cannot read the folder: {reason_of(error)}") from None
    if len(names) == 1:
        return os.path.join(path, names[0])
    names.sort(key=lambda name: name != "openvino_model.xml")
    message = f"the folder holds {len(names)} models: {', '.join(names)}" if names else "the folder holds no .xml file"
    raise ReadError.of_file(path, message, hint="give one of them" if names else None)


def _rest(file: Any) -> Any:
    """Return the unread rest of an open file; raise ReadError if all of it has been read before."""
    content = file.read()
    if not content and file.seekable() and file.tell():
        message = "the open file is at its end: all of it has been read before"
        raise ReadError.of_file(_path_of(file), message, hint="call file.seek(0) first")
    return content


def _path_of(file: Any) -> str | None:
    """Return the path of an open file, None if its name is not the path of the file that is open.

    The name of a member of a ZIP archive, for example, may be the path of another file.
    """
    name = getattr(file, "name", None)
    if not isinstance(name, (str, bytes, os.PathLike)):
        return None
    try:
        return os.fsdecode(name) if os.path.samestat(os.fstat(file.fileno()), os.stat(name)) else None
    except (OSError, ValueError, AttributeError):  # the object has no descriptor, or the path no file
        return None


def _check_doctype(data: bytes, encoding: str | None, name: str | None, diagnostics: Diagnostics) -> None:
    """Report a DOCTYPE: OpenVINO ignores it, but other readers may fetch the files that it names.

    Raises ReadError if it declares entities, because the parser would expand them in attributes and no IR needs them.
    Only the part before the root element is parsed here, within the parser's own size limits.
    """
    parser = etree.XMLPullParser(events=("start",), encoding=encoding, **SAFE)
    for start in range(0, len(data), _CHUNK):
        failure = None
        try:
            parser.feed(data[start : start + _CHUNK])
        except etree.XMLSyntaxError as error:
            failure = error  # matters only before the root element
        for _, root in parser.read_events():
            info = root.getroottree().docinfo
            if info.internalDTD is None:
                return
            if declared := [str(entity.name) for entity in info.internalDTD.iterentities()]:
                message = f"the DOCTYPE declares the entity '{declared[0]}'; files with entities are not read"
                place = Place(name, _line_of(b"<!ENTITY", data))
                raise ReadError(diagnose(ENTITIES, message, place, hint="replace each entity by its text"))
            message = f"the document has the DOCTYPE {info.doctype}"
            diagnostics.report(DOCTYPE, message, Place(name, _line_of(b"<!DOCTYPE", data)), hint="remove it")
            return
        if failure is not None:
            raise failure


def _line_of(declaration: bytes, data: bytes) -> int:
    """Return the line of the first declaration of a kind outside comments, in any encoding."""
    text = data.replace(b"\0", b"")  # turns UTF-16 and UTF-32 into ASCII
    before = re.match(rb"(?:(?><!--.*?-->)|(?!<!--).)*?(?=%s)" % declaration, text, re.DOTALL)
    return before[0].count(b"\n") + 1 if before else 1


def _syntax_error(error: etree.XMLSyntaxError, data: bytes, name: str | None) -> Diagnostic:
    """Return the diagnostic for content that cannot be parsed; raise MemoryError if memory was the reason."""
    if int(error.code) == etree.ErrorTypes.ERR_NO_MEMORY:
        raise MemoryError("the parser of XML needs more memory")
    if data.lstrip()[:1] != b"<":
        if data.startswith(b"version https://git-lfs"):
            message, hint = "this is a git-LFS pointer, not the model", "fetch the real file with `git lfs pull`"
            return diagnose(LFS_POINTER, message, Place(name, 1), hint=hint)
        begins = repr(data.lstrip()[:16])[1:]
        message, hint = other_format(data, name) or (
            f"this is not XML: an IR topology begins with '<', this file with {begins}",
            "give the .xml of the pair; a model of another framework is converted with `ovc`",
        )
        return diagnose(NOT_XML, message, Place(name, 1), hint=hint)
    line, column = error.position
    lines = data.splitlines()
    text = lines[line - 1].decode(errors="replace").strip() if line <= len(lines) else ""
    reason = " ".join(str(error.msg).rsplit(", line", 1)[0].removesuffix(_OF_THE_PARSER).split())
    remedy = _SYNTAX_HINTS.get(int(error.code))
    if (unclosed := _UNCLOSED.search(reason)) is not None:
        remedy = f"<{unclosed[1]}> of line {unclosed[2]} is not closed before </{unclosed[3]}>"
    at_end = line > len(lines) or (line == len(lines) and column >= len(lines[-1]))
    if at_end and b"</net" not in data:
        message = f"the file ends before the model does: {reason}"
        hint = "it seems to be truncated; fetch or convert it again"
        return diagnose(TRUNCATED, message, Place(name, line), column=column, hint=hint)
    if (conflict := _CONFLICT.search(data)) is not None:
        line = data.count(b"\n", 0, conflict.start()) + 1
        hint = "resolve the conflict, for example by taking one of the two files as a whole"
        return diagnose(NOT_XML, "the file contains a merge conflict of git", Place(name, line), hint=hint)
    shown = f" in: {text[:120]}" if text else ""
    return diagnose(NOT_XML, f"not well-formed XML: {reason}{shown}", Place(name, line), column=column, hint=remedy)


_CONFLICT = re.compile(rb"^<<<<<<< ", re.MULTILINE)
_OF_THE_PARSER = ", use XML_PARSE_HUGE option"
"""Advice of the parser to programs."""
_UNCLOSED = re.compile(r"tag mismatch: (\S+) line (\d+) and (\S+)")
_SYNTAX_HINTS: dict[int, str] = {
    etree.ErrorTypes.ERR_ATTRIBUTE_NOT_STARTED: 'write the value of an attribute in quotes, as axis="1"',
    etree.ErrorTypes.ERR_NAME_REQUIRED: "a tag needs a name; '...' in a snippet means that something is left out",
    etree.ErrorTypes.ERR_INVALID_CHAR: "remove the character; such bytes come from a damaged copy or download",
    etree.ErrorTypes.ERR_RESOURCE_LIMIT: "no model needs such depth or such long names; convert it again",
    etree.ErrorTypes.ERR_DOCUMENT_END: "nothing may follow the root element; perhaps two files have been joined",
}


def find_weights(name: str | None, weights: Any) -> WeightBytes:
    """Return the given weights (a path, a buffer or an open file), else the .bin next to the .xml, else no weights."""
    if isinstance(weights, (str, os.PathLike)):
        return WeightBytes.open(weights)
    if hasattr(weights, "read") and isinstance(content := _rest(weights), bytes):
        return WeightBytes.of(content)
    if weights is not None:
        return WeightBytes.of(weights)
    if name is None:
        return WeightBytes.none("of weights")
    beside = os.path.splitext(name)[0] + ".bin"
    return WeightBytes.open(beside) if os.path.exists(beside) else WeightBytes.none(beside)
