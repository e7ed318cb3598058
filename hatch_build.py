"""Writes the stubs of the opsets, which git does not have, when hatchling builds a wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from ovir.building.stubs import stub
        from ovir.ops.base.opsets import NEWEST_OPSET

        for opset in range(1, NEWEST_OPSET + 1):
            Path(self.root, "ovir", f"opset{opset}.pyi").write_text(stub(opset), encoding="utf-8")
