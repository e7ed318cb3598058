"""Every public case of one operation is rebuilt by the functions of the opsets; skipped where the cases are missing.

The cases are looked for next to the repository, or in the folder that OVIR_OPCASES names.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from rebuilding import difference, rebuilt

import ovir
from ovir.core.arrays import Array

CASES = Path(os.environ.get("OVIR_OPCASES", Path(__file__).parents[3] / "shared" / "opcases")) / "cases"
VERSIONS = sorted(folder.name for folder in CASES.glob("*")) if CASES.is_dir() else []


def feeds_of(model: ovir.Model, folder: Path) -> dict[str, Array]:
    """Return the arrays of the first call, by the names of inputs; types that NumPy lacks are stored as their bits."""
    path = folder / "inputs.npz"
    stored = dict(np.load(path)) if path.is_file() else {}
    feeds = {}
    for port in model.inputs:
        name, element_type = port.layer.name, port.element_type
        if name in stored:
            feeds[name] = stored[name]
        elif f"{name}__{element_type}" in stored:
            feeds[name] = stored[f"{name}__{element_type}"].view(element_type.to_dtype())
    return feeds


@pytest.mark.skipif(not VERSIONS, reason="the cases of operations are not next to the repository")
@pytest.mark.parametrize("version", VERSIONS or [""])
def test_cases_are_rebuilt(version: str, tmp_path: Path) -> None:
    rebuilds = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for folder in sorted((CASES / version).iterdir()):
            try:
                model = ovir.read_model(folder / "model.xml")
            except ovir.OvirError:
                continue  # a faulty file
            is_run = json.loads((folder / "case.json").read_text(encoding="utf-8"))["kind"] == "run"
            again = rebuilt(model, tmp_path)
            assert difference(model, again, feeds_of(model, folder) if is_run else None) == "", folder.name
            rebuilds += 1
    assert rebuilds
