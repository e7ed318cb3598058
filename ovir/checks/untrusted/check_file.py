"""The check of one untrusted file, in the process that a guard has started for it."""

from __future__ import annotations

from dataclasses import replace

from ovir.checks.checker import check_here
from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.paths import path_fault, sparse_fault, weights_beside
from ovir.checks.untrusted.severities import ALWAYS_ERRORS, LIMIT_OF_DIAGNOSTICS
from ovir.checks.untrusted.xml_scan import scan
from ovir.core.reading import read_bytes
from ovir.diagnostics.codes import CODES, NOT_XML, OUT_OF_PROPORTION, OVER_BUDGET, TOO_LARGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose


def check_file(path: str, weights: str | None, options: CheckOptions) -> list[Diagnostic]:
    """Return the diagnostics of a file: all that it could do to its reader, and all that ``check`` reports."""
    if (fault := path_fault(path) or sparse_fault(path)) is not None:
        return [fault]
    beside = weights_beside(path) if weights is None else weights
    bad_weights = (path_fault(beside) or sparse_fault(beside)) if options.need_weights else None
    found, is_endless = _of_bytes(path)
    if bad_weights is not None:
        found.append(bad_weights)
    if is_endless:  # with a code that nobody can ignore, because nothing else of the file is checked
        found.append(diagnose(OVER_BUDGET, "the file is not read, because that would take too long", Place(path)))
    else:
        skip = (*options.skip, TOO_LARGE.id)  # LARGE_TENSOR does not depend on the machine
        need_weights = options.need_weights and bad_weights is None
        of_model = check_here(path, weights, replace(options, need_weights=need_weights, skip=skip, untrusted=True))
        if any(CODES[d.code].unusable for d in of_model):  # the reader says more precisely what is wrong
            found = [d for d in found if d.code != NOT_XML.id]
        found += of_model
    raised = [replace(d, severity=Severity.ERROR) if d.code in ALWAYS_ERRORS else d for d in found]
    return _limited([d for d in raised if d.code not in options.skip], path)


def _of_bytes(path: str) -> tuple[list[Diagnostic], bool]:
    try:
        data = read_bytes(path)
    except (OSError, ValueError):
        return [], False  # the reader gives the reason
    return scan(data, path)


def _limited(found: list[Diagnostic], path: str) -> list[Diagnostic]:
    """Return as many diagnostics as anybody reads, with texts that are not too long; unusable ones come first."""
    kept = sorted(found, key=lambda d: (not CODES[d.code].unusable, d.severity is not Severity.ERROR))
    if len(kept) > LIMIT_OF_DIAGNOSTICS:
        message = f"the file has {len(kept):,} diagnostics; this list ends after {LIMIT_OF_DIAGNOSTICS:,}"
        kept = [*kept[:LIMIT_OF_DIAGNOSTICS], diagnose(OUT_OF_PROPORTION, message, Place(path))]
    return sorted((_shortened(d) for d in kept), key=lambda d: (d.line or 0, d.column or 0))


def _shortened(found: Diagnostic) -> Diagnostic:
    layer = found.layer and _cut(found.layer)
    return replace(found, message=_cut(found.message), layer=layer, hint=found.hint and _cut(found.hint))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 2000
"""Characters of a message."""
