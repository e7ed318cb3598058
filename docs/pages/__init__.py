"""The pages of the documentation that follow from the code, wholly or in parts."""

from __future__ import annotations

from collections.abc import Callable

from docs.pages import commands, operations, tables

PAGES: dict[str, Callable[[str], str]] = {
    "docs/diagnostics.md": tables.with_codes,
    "docs/operations.md": lambda _: operations.operations_page(),
    "docs/old-releases.md": tables.with_releases,
    "docs/devices.md": tables.with_limits,
    "docs/divergences.md": tables.with_divergences,
    "docs/wrong-results.md": tables.with_properties,
    "docs/onnx.md": tables.with_exports,
    "docs/reference/commands.md": lambda _: commands.page(),
    "README.md": tables.with_counts,
}
"""Each page with the function from the contents that it has to those that it should have."""
