"""Real models and operation cases are the same after they are saved, and a second save changes nothing.

The models are not part of the repository: the tests look for them beside it, or at OVIR_SHARED.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ovir
from ovir.model import Model
from ovir.ops.infrastructure import Const

_SHARED = Path(os.environ.get("OVIR_SHARED", Path(__file__).parents[3] / "shared"))
_FOLDERS = [
    *sorted(_SHARED.glob("models/*/")),
    *sorted(_SHARED.glob("irs/*/")),
    *sorted(_SHARED.glob("opcases/cases/*/")),
]


@pytest.mark.skipif(not _FOLDERS, reason="there are no shared models beside the repository (or at OVIR_SHARED)")
@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda path: path.name)
def test_a_round_trip(folder: Path, tmp_path: Path) -> None:
    faults = [fault for path in sorted(folder.rglob("model.xml")) for fault in _faults(path, tmp_path)]
    assert faults == []


def _faults(path: Path, folder: Path) -> list[str]:
    beside = path.with_name("model.synth.bin")
    try:
        model = ovir.read_model(path, beside if beside.exists() else None, legacy_io=True)
    except ovir.OvirError:
        return []  # whether it can be read is tested elsewhere
    ovir.save_model(model, folder / "one.xml")
    again = ovir.read_model(folder / "one.xml")
    ovir.save_model(again, folder / "two.xml")
    faults = [] if _described(again) == _described(model) else [f"{path}: the model differs"]
    for end in (".xml", ".bin"):
        if (folder / f"one{end}").read_bytes() != (folder / f"two{end}").read_bytes():
            faults.append(f"{path}: the second {end} differs")
    return faults


def _described(model: Model) -> list[object]:
    """What is known of a model, except lines and places in the .bin."""
    found: list[object] = [
        model.name,
        *([port.layer.name for port in ports] for ports in (model.inputs, model.outputs)),
    ]
    for layer in model.file_order:
        attributes = {} if isinstance(layer.operator, Const) else layer.attributes
        if layer.type == "Parameter" and model.scope:
            attributes = {key: value for key, value in attributes.items() if key != "shape"}
        types = [str(port.type) for port in (*layer.inputs, *layer.outputs)]
        names = [sorted(port.own_names) for port in layer.outputs]
        sources = [None if (p := port.source) is None else (p.layer.id, p.index) for port in layer.inputs]
        info = layer.rt_info.to_dict()
        data = layer.operator.data.tobytes() if isinstance(layer.operator, Const) else b""
        found.append(
            (layer.id, layer.name, layer.type, layer.version, str(attributes), types, names, sources, info, data)
        )
        found.extend((key, _described(body)) for key, body in layer.bodies.items())
    return found
