"""The files of a model: the .xml parsed safely, the .bin found. Every failure is a ReadError with a hint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from ovir.diagnostics import NOT_XML, UNREADABLE, Diagnostic, Place, ReadError, diagnostic
from ovir.ir.weights import Weights

Source = str | os.PathLike[str] | bytes | BinaryIO
"""The path of an .xml, its content, or an open binary file."""


def parse_xml(model: Source) -> tuple[etree._Element, str | None]:
    """The root element, and the file's name where there is one. Entities are not expanded, nothing is fetched."""
    name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
    if isinstance(model, bytes):
        data = model
    elif name is None:
        data = model.read()  # type: ignore[union-attr]  # a path or bytes has been dealt with above
    else:
        try:
            data = Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReadError(diagnostic(UNREADABLE, f"cannot read the file: {reason}", Place(name))) from None
    if not data.strip():
        raise ReadError(diagnostic(UNREADABLE, "the file is empty", Place(name)))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(data, parser), name
    except etree.XMLSyntaxError as error:
        raise ReadError(_syntax_error(error, data, name)) from None


def _syntax_error(error: etree.XMLSyntaxError, data: bytes, name: str | None) -> Diagnostic:
    if data.lstrip()[:1] != b"<":
        message = "this is not XML: an IR topology begins with '<', this file with " + repr(data.lstrip()[:16])[1:]
        hint: str | None = "give the .xml of the pair; a model of another framework is converted with `ovc`"
        if data.startswith(b"version https://git-lfs"):
            message, hint = "this is a git-LFS pointer, not the model", "fetch the real file with `git lfs pull`"
        return diagnostic(NOT_XML, message, Place(name, 1), hint=hint)
    line, column = error.position
    lines = data.splitlines()
    text = lines[line - 1].decode(errors="replace").strip() if line <= len(lines) else ""
    reason = str(error.msg).rsplit(", line", 1)[0]
    hint = _SYNTAX_HINTS.get(int(error.code))
    shown = f" in: {text[:120]}" if text else ""
    return diagnostic(NOT_XML, f"not well-formed XML: {reason}{shown}", Place(name, line), column=column, hint=hint)


_TRUNCATED = "the file seems to be truncated"
_SYNTAX_HINTS: dict[int, str] = {
    etree.ErrorTypes.ERR_ATTRIBUTE_NOT_STARTED: 'write the value of an attribute in quotes, as axis="1"',
    etree.ErrorTypes.ERR_NAME_REQUIRED: "a tag needs a name; '...' in a snippet stands for what is left out",
    etree.ErrorTypes.ERR_TAG_NOT_FINISHED: _TRUNCATED,
    etree.ErrorTypes.ERR_GT_REQUIRED: _TRUNCATED,
    etree.ErrorTypes.ERR_DOCUMENT_END: _TRUNCATED,
}


def find_weights(name: str | None, weights: Any) -> Weights:
    """The weights given (a path or a buffer), else the .bin beside the .xml, else none."""
    if isinstance(weights, (str, os.PathLike)):
        return Weights.open(weights)
    if weights is not None:
        return Weights.of(weights)
    if name is None:
        return Weights.none("of weights")
    beside = Path(name).with_suffix(".bin")
    return Weights.open(beside) if beside.exists() else Weights.none(str(beside))
