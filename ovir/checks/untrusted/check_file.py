"""The check of one untrusted file, in the process that a guard has started for it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate

from ovir.checks.checker import check_here
from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.paths import path_fault, sparse_fault, weights_beside
from ovir.checks.untrusted.xml_scan import scan
from ovir.core.reading import read_bytes
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import shortened


def check_file(path: str, weights: str | None, options: CheckOptions) -> list[Diagnostic]:
    """Return the diagnostics of a file: all that it could do to its reader, and all that ``check`` reports."""
    fault = path_fault(path) or sparse_fault(path)
    listed = _of_file(path, weights, options) if fault is None else _unread([fault], path)
    raised = [replace(d, severity=codes.Severity.ERROR) if _is_always_error(codes.CODES[d.code]) else d for d in listed]
    return _limited([d for d in raised if d.code in codes.NEVER_IGNORED or d.code not in options.skip], path)


def _of_file(path: str, weights: str | None, options: CheckOptions) -> list[Diagnostic]:
    """Return the diagnostics of a regular file, and of its weights."""
    beside = weights_beside(path) if weights is None else weights
    bad_weights = (path_fault(beside) or sparse_fault(beside)) if options.need_weights else None
    data: bytes | None = None
    with suppress(OSError, ValueError):  # of which the reader gives the reason
        data = read_bytes(path)
    diagnostics, is_endless = ([], False) if data is None else scan(data, path)
    if bad_weights is not None:
        diagnostics += _unread([bad_weights], beside)
    if is_endless:
        return _unread(diagnostics, path)
    skip = (*options.skip, codes.TOO_LARGE.id)  # LARGE_TENSOR does not depend on the machine
    need_weights = options.need_weights and bad_weights is None
    of_model = check_here(path, weights, replace(options, need_weights=need_weights, skip=skip, untrusted=True))
    if any(codes.CODES[d.code].unusable for d in of_model):  # the reader says more precisely what is wrong
        diagnostics = [d for d in diagnostics if d.code != codes.NOT_XML.id]
    return diagnostics + of_model


def _is_always_error(code: codes.Code) -> bool:
    return code.danger > 0 and not code.honest


def _unread(diagnostics: list[Diagnostic], path: str) -> list[Diagnostic]:
    """Return why a file is not read, with a code that nobody can ignore, because nothing else of it is checked."""
    if any(d.code in codes.NEVER_IGNORED for d in diagnostics):
        return diagnostics
    reasons = " and ".join(sorted({d.code for d in diagnostics}))
    return [*diagnostics, diagnose(codes.OVER_BUDGET, f"because of {reasons}, the file is not read", Place(path))]


def _limited(listed: list[Diagnostic], path: str) -> list[Diagnostic]:
    """Return as many diagnostics as anybody reads, with texts that are not too long; unusable ones come first."""
    ordered = sorted(listed, key=lambda d: (d.code not in codes.NEVER_IGNORED, d.severity is not codes.Severity.ERROR))
    first = [_shortened(d) for d in ordered[:_MOST_DIAGNOSTICS]]
    sizes = accumulate(len(json.dumps(d.to_dict())) for d in first)
    kept = [d for d, size in zip(first, sizes, strict=True) if size <= _MOST_BYTES]
    if len(kept) < len(listed):
        message = f"the file has {len(listed):,} diagnostics; this list ends after {len(kept):,}"
        kept.append(diagnose(codes.OUT_OF_PROPORTION, message, Place(path)))
    return sorted(kept, key=lambda d: (d.line or 0, d.column or 0))


def _shortened(d: Diagnostic) -> Diagnostic:
    layer, hint = (text and shortened(text, _LONGEST) for text in (d.layer, d.hint))
    return replace(d, message=shortened(d.message, _LONGEST), layer=layer, hint=hint)


_LONGEST = 2000
"""Characters of a message."""
_MOST_DIAGNOSTICS = 1000
_MOST_BYTES = 1 << 23
"""Bytes of an answer; a diagnostic of the longest texts takes some 80 KB."""
