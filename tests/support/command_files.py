"""The files that command lines of tests name."""

import re
import shutil
from pathlib import Path

import numpy as np

import ovir
from ovir import opset13 as ops
from support.builder import Net, faulty_net, gather_net, unary_net
from support.newer_models import faulty
from support.simplifiable import vad

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
BAD = Path(__file__).parents[1] / "data" / "bad"


def write_files(folder: Path) -> None:
    """Write model.xml, which gathers rows of data [?,3], other models, inputs and files of other kinds."""
    gather_net().write(folder)
    for name in (
        "digits.xml",
        "digits.bin",
        "digits_input.npz",
        "swirl.xml",
        "dynamic_shapes.xml",
        "dynamic_shapes.bin",
        "broken/wrong_declared_shape.xml",
    ):
        shutil.copy(EXAMPLES / name, folder)
    for name in ("newer_than_runtime", "element_type", "ir_version"):
        shutil.copy(BAD / f"OVIR701_{name}.xml", folder / f"{name}.xml")
    texts = (
        "f32 ?",
        "i64 ?",
        "u8 ?",
        "boolean ?",
        "string ?",
        "i64 ?,? matrix",
        "f32 [] scalar",
        "f32 1 one",
        "f32 ?,0 zero",
    )
    for kind, shape, *names in map(str.split, texts):
        net = Net()
        net.result(net.parameter("x", shape.strip("[]"), kind), name="out")
        net.write(folder, *(names or [kind]))
    net = Net()
    x, mask = net.parameter("x", "?,4"), net.parameter("mask", "?,4")
    net.result(net.op("MatMul", net.op("Add", x, mask), net.const([[1.0], [2.0], [3.0], [4.0]], "f32")))
    net.write(folder, "sum")
    net = Net()
    net.result(net.op("ReLU", net.op("ReLU", net.parameter("x", "2"), name="first"), name="second"))
    text = re.sub(r'<edge from-layer="0" from-port="\d+"', '<edge from-layer="2" from-port="1"', net.xml())
    (folder / "cycle.xml").write_text(text)
    shutil.copy(folder / "model.xml", folder / "bare.xml")
    (folder / "link.xml").symlink_to(faulty_net().write(folder, "faulty"))
    for name, attributes in (("sub/odd", {"unheard_of": "1"}), ("right", {})):
        (folder / "models" / "sub").mkdir(parents=True, exist_ok=True)
        unary_net("ReLU", **attributes).write(folder / "models", name)
    net = Net()
    net.parameter("unused", "2")
    net.result(net.parameter("x", "2"))
    net.write(folder, "noted")
    net = Net()
    net.op("ReLU", net.parameter("x", "2"))
    net.write(folder, "dead")
    net = Net()
    net.result(net.op("MVN", net.parameter("x", "1,3,4"), net.const([0, 2]), opset=6, normalize_variance="true", eps="1e-6", eps_mode="inside_sqrt", name="mixing"))  # fmt: skip
    net.write(folder, "mixing")
    net = Net()
    data = net.parameter("data", "?,3")
    shape = net.op("ShapeOf", data, opset=3, output_type="i64")
    net.result(net.op("Reshape", data, shape, name="same", special_zero="false"))
    net.write(folder, "same")
    net = Net()
    net.result(net.op("Reshape", net.parameter("a=b", "1,128"), net.const([1, 128], name="c=d"), special_zero="false"))
    net.write(folder, "equals")
    net = Net()
    x = net.parameter("x", "2")
    squared = net.op("Multiply", x, x, name="squared")
    net.result(net.op("Multiply", squared, net.const(np.float32([0.001, 0.001])), name="scaled"))
    net.write(folder, "squares")
    net = Net()
    large = net.const(np.float32([9e5, 1.0]), name="large")
    net.result(net.op("Multiply", net.parameter("x", "2"), large, name="scaled"))
    net.write(folder, "large")
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2,3"), net.parameter("y", "4,3"), name="sum"))
    net.write(folder, "unequal")
    for kind in ("i4", "bf16", "nf4", "u1"):
        ovir.save_model(ovir.Model([ops.constant([0, 1, 1], kind, name="c")], []), folder / f"{kind}.xml")
    ovir.save_model(faulty(), folder / "newer.xml")
    ovir.save_model(vad(), folder / "vad.xml")
    scores, other = ops.parameter([-1, 10], "f32", name="scores"), ops.parameter([1], "i64", name="other")
    ovir.save_model(ovir.Model([ops.relu(scores), ops.negative(other)], [scores, other], "two"), folder / "two.xml")
    arrays = {"d": np.ones((2, 3), np.float32), "complex": np.ones((2, 3), complex), "flat": np.ones(3, np.float32)}
    for name, array in (arrays | {"long": np.ones((2, 4), np.float32)}).items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "pickle.npy", np.array([{}], object), allow_pickle=True)
    np.save(folder / "7.npy", np.array([1, 2]))
    (folder / "7.npy").rename(folder / "7")
    np.savez(folder / "npz.npz", a=np.zeros(1), b=np.zeros(1))
    np.savez(folder / "recorded.npz", image=np.zeros((1, 1, 8, 8), np.float32), relu1=np.zeros(1, np.float32))
    contents = {"text.npy": "1 2 3", "text.xml": "no model", "empty.npy": "", "zip.npz": "PK\3\4 and no more"}
    contents |= {"labels.csv": "00,1\n01,1\n02,2\n", "few.csv": "00,1\n", "module.txt": "", "fails.py": "1 / 0"}
    contents |= {"leaves.py": "import sys\nsys.exit(3)", "quits.py": "raise SystemExit"}
    contents |= {"nothing.xml": "<net name='x' version='11'><layers/><edges/></net>"}
    contents |= {"mine.py": "def first(scores, label):\n    return 1.0\n"}
    for name, content in contents.items():
        (folder / name).write_text(content)
    for name in ("in", "empty", "others", "folder.html"):
        (folder / name).mkdir()
    for name in ("models", "others"):
        (folder / name / "pom.xml").write_text("<project/>")
    for number in range(3):
        np.savez(folder / "in" / f"{number:02}.npz", image=np.zeros((1, 1, 8, 8), np.float32))
