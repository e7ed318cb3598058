"""Writes the stubs, which git does not have, when hatchling builds a wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from ovir.generated_files import STUBS

        for name, make in STUBS.items():
            Path(self.root, name).write_text(make(), encoding="utf-8")
