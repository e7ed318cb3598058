"""`ovir.fix`: apply the fixes of a file, until none is left, and prove that the model computes what it has computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ovir.checks.checker import FoundDiagnostics, collected
from ovir.checks.consequences import sum_up
from ovir.checks.fixes import DECLARATIONS
from ovir.checks.options import CheckOptions
from ovir.diagnostics.codes import CODES, Severity
from ovir.diagnostics.diagnostic import Diagnostic, TextEdit
from ovir.diagnostics.errors import OvirError
from ovir.editing.proof import NOT_WANTED, verdict
from ovir.ir.source import NewContent, content_of, find_weights
from ovir.model import read_model
from ovir.system.files import replaced_file, writing_pair

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Fixed:
    """A file whose diagnostics were fixed, before it is written."""

    path: str
    """The path of the .xml."""
    before: bytes
    """The content of the file."""
    after: bytes
    """The content with all fixes; the text around them is the same."""
    fixed: list[Diagnostic]
    """The diagnostics that were fixed, in order."""
    left: list[Diagnostic]
    """The diagnostics that are left, as ``ovir.check`` returns them."""
    verdict: str
    """The outcome of the proof in words: the results agree, or why nothing was proven."""

    def diff(self) -> str:
        """Return the change as a unified diff; empty if nothing was fixed."""
        from difflib import unified_diff  # only needed here

        old, new = (data.decode(errors="replace").splitlines(keepends=True) for data in (self.before, self.after))
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in unified_diff(old, new, self.path, self.path)
        )

    def save(self, path: Path | None = None, weights: Path | None = None) -> None:
        """Write the file in its place, or at another path with a copy of the weights; raise WriteError."""
        if path is None:
            if self.fixed:
                with replaced_file(self.path, "write the fixed model") as file:
                    file.write(self.after)
            return
        source = find_weights(self.path, weights)
        with writing_pair(path, has_data=not source.missing) as files:
            files[0].write(self.after)
            if not source.missing:
                files[1].write(source.data.data)


def fix(
    model: Path,
    weights: Path | None = None,
    *,
    output: Path | None = None,
    unsafe: bool = False,
    verify: bool = True,
    skip: Collection[str] = (),
    wanted: Callable[[Diagnostic], bool] | None = None,
) -> Fixed:
    """Fix the diagnostics of a file whose exact change is known, and return what was fixed and what is left.

    Args:
        model: The path of the .xml.
        weights: Its weights, if they are not the .bin next to it.
        output: Where to write the result, with a copy of the weights; it may be the model itself. By default nothing is
            written; ``Fixed.save`` writes it later.
        unsafe: Whether fixes are applied that may change results.
        verify: Whether the model must prove, on random inputs, that its results are the same.
        skip: Codes (``OVIR510``) that are neither looked for nor fixed.
        wanted: A function that says which diagnostics to fix; by default all.

    Raises ModelError if the results are not the same, and ReadError if the file cannot be read.
    """
    result = fix_here(
        os.fspath(model), weights, CheckOptions(skip=tuple(skip)), unsafe=unsafe, verify=verify, wanted=wanted
    )
    if output is not None:
        is_own = os.path.realpath(output) == os.path.realpath(model)
        result.save(None if is_own else output, weights)
    return result


def fix_here(
    path: str,
    weights: Path | None,
    options: CheckOptions,
    *,
    unsafe: bool,
    verify: bool,
    wanted: Callable[[Diagnostic], bool] | None = None,
) -> Fixed:
    """Fix a file as ``fix`` does, with all options of a check."""
    content, name = content_of(path)
    path = name or path  # of a folder, its only .xml
    before = content if isinstance(content, bytes) else content.encode()

    def is_wanted(d: Diagnostic) -> bool:
        return d.fix is not None and (unsafe or d.fix.is_safe) and (wanted is None or wanted(d))

    after, fixed, left = _fixed(path, before, weights, options, is_wanted)
    how = NOT_WANTED
    if not fixed:
        how = "nothing has changed"
    elif verify:
        how = _proof(path, before, after, weights, options, fixed)
    return Fixed(path, before, after, fixed, FoundDiagnostics(sum_up(left)), how)


def _fixed(
    path: str, text: bytes, weights: Any, options: CheckOptions, wanted: Callable[[Diagnostic], bool]
) -> tuple[bytes, list[Diagnostic], list[Diagnostic]]:
    """Return the text of a file with all fixes that are wanted, the diagnostics that were fixed, and those left."""
    fixed: list[Diagnostic] = []
    while True:
        with collected(NewContent(path, text), weights, options) as (found, with_fix):
            left = list(map(with_fix, found))
        done = {_kind(d) for d in fixed}
        able = [d for d in left if wanted(d) and _kind(d) not in done]  # one that its fix does not remove is left
        if not able:
            return text, fixed, left
        # The others are judged again with what ports declare now.
        chosen, edits = _chosen([d for d in able if d.code in DECLARATIONS] or able)
        fixed += chosen
        for edit in sorted(edits, reverse=True):
            text = text[: edit.begin] + edit.text + text[edit.end :]


def _kind(diagnostic: Diagnostic) -> Diagnostic:
    return replace(diagnostic, line=None, column=None)


def _chosen(able: Sequence[Diagnostic]) -> tuple[list[Diagnostic], set[TextEdit]]:
    """Return the diagnostics whose fixes do not touch each other, and all their edits."""
    chosen: list[Diagnostic] = []
    edits: dict[TextEdit, None] = {}
    for diagnostic in able:
        assert diagnostic.fix is not None
        new = [edit for edit in diagnostic.fix.edits if edit not in edits]
        if not any(edit.begin <= other.end and other.begin <= edit.end for edit in new for other in edits):
            chosen.append(diagnostic)
            edits |= dict.fromkeys(new)
    return chosen, set(edits)


def _proof(
    path: str, before: bytes, after: bytes, weights: Any, options: CheckOptions, fixed: Sequence[Diagnostic]
) -> str:
    """Return the verdict on the results before and after fixes; ModelError if they differ."""
    if any(d.fix is not None and not d.fix.is_safe for d in fixed):
        return "not proven: unsafe fixes may change results"
    if not options.need_weights:
        return "not proven: the weights are not read"
    rest = ""
    try:
        old = read_model(NewContent(path, before), weights)
    except OvirError as error:  # without the fixes of errors, which therefore are not proven
        kinds = {_kind(d) for d in fixed if d.severity is Severity.ERROR and not CODES[d.code].tolerated}
        readable, needed, _ = _fixed(path, before, weights, options, lambda d: d.fix is not None and _kind(d) in kinds)
        why = f"not proven: the model could not be read before: {error.diagnostic.message}"
        if readable == after:
            return why
        try:
            old = read_model(NewContent(path, readable), weights)
        except OvirError:
            return why
        rest = f"; the fixes of {', '.join(sorted({d.code for d in needed}))} are {why}"
    return f"{verdict(old, read_model(NewContent(path, after), weights))}{rest}"
