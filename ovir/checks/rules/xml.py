"""The document around the model."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, finding, rule
from ovir.codes import DOCTYPE
from ovir.diagnostics import Diagnostic, Place


@rule(DOCTYPE)
def doctype(context: Context) -> Iterator[Diagnostic]:
    """OpenVINO skips it; other readers may fetch what it names."""
    if text := context.root.getroottree().docinfo.doctype:
        yield finding(DOCTYPE, f"the document has the DOCTYPE {text}", Place(context.file, 1), hint="remove it")
