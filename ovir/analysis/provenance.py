"""Where a model comes from: what the file says of the tools that made it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from ovir.graph.rt_info import RtInfo

_PARAMETERS = ("conversion_parameters", "cli_parameters")
"""Where a converter records its options; the second in files of version 10."""


@dataclass
class Provenance:
    """Fields are None if the file does not record them."""

    framework: str | None = None
    """The framework of the original model: ``onnx``, ``pytorch``, ``tf``."""
    source: str | None = None
    """The file name of the original model."""
    converter: str | None = None
    """The version of the converter."""
    runtime: str | None = None
    """The version of the OpenVINO that wrote the file."""
    tools: dict[str, str] = field(default_factory=dict)
    """The versions of others that had a part in it, such as nncf."""

    def __str__(self) -> str:
        return ", ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if version := self.runtime or self.converter:
            yield f"OpenVINO {_short(version)}"
        if self.converter and self.runtime and _short(self.converter) != _short(self.runtime):
            yield f"converter {_short(self.converter)}"
        if self.framework or self.source:
            yield f"from {self.framework or self.source}"
        for tool, version in self.tools.items():
            yield f"{tool} {_short(version)}"


def provenance(info: RtInfo | None) -> Provenance:
    """Return what the runtime information of a model says of its making."""
    found = Provenance()
    if info is None:
        return found
    found.converter = _text(info, "MO_version")
    found.runtime = _text(info, "Runtime_version") or _text(info, "OpenVINO Runtime")
    for key in _PARAMETERS:
        if isinstance(parameters := info.get(key), RtInfo):
            found.framework = found.framework or _text(parameters, "framework")
            source = _text(parameters, "input_model")
            found.source = found.source or (os.path.basename(source.replace("\\", "/")) if source else None)
    for key, value in info.items():
        if isinstance(value, RtInfo) and key not in _PARAMETERS:
            for name, text in value.items():
                if isinstance(text, str) and (name == "version" or name.endswith("_version")):
                    found.tools[key if name == "version" else name.removesuffix("_version")] = text
    return found


def _text(info: RtInfo, key: str) -> str | None:
    value = info.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _short(version: str) -> str:
    """Return a version without build number and commit: ``2022.1.0-7019-cdb9bec7210`` is 2022.1.0."""
    head = version.split("-", 1)[0]
    return head if head[:1].isdigit() else version
