"""Export the digit classifier to ONNX, and run the file with onnxruntime alone.

Run ``python examples/export_to_onnx.py [FOLDER]``. It needs ``pip install "ovir[onnx,onnxruntime]"``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import ovir

XML = Path(__file__).parent / "xml"


def main(folder: Path) -> float:
    """Export, run, and return the share of sample digits that onnxruntime classifies as ovir does."""
    path = folder / "digits.onnx"
    exported = ovir.export_onnx(XML / "digits.xml", path)
    with np.load(XML / "digits_input.npz") as arrays:
        images = arrays["image"]

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (scores,) = session.run(exported.outputs, {exported.inputs[0]: images})

    ours = ovir.compile_model(XML / "digits.xml")(images)[0]
    print(f"{path.name}: inputs {exported.inputs}, outputs {exported.outputs}")
    print(f"largest difference from ovir: {np.abs(scores - ours).max():.1e}")
    print("digits:", *scores.argmax(axis=1))
    return float((scores.argmax(axis=1) == ours.argmax(axis=1)).mean())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
