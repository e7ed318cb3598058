"""What the command line pays on each call, however small the file."""

from __future__ import annotations

import subprocess
import sys

from ovir.ops.base.attributes import attribute, declared_attributes


def test_what_few_need_is_not_imported() -> None:
    code = "import sys, ovir, ovir.cli; print(*{'networkx', 'rich', 'openvino', 'onnx'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_only_annotations_of_attributes_are_evaluated() -> None:
    class Base:
        other: NotThere  # type: ignore[name-defined]  # noqa: F821
        axis: int = attribute()

    class Derived(Base):
        mode: str = attribute("a", name="the-mode")

    assert {name: a.type for name, a in declared_attributes(Derived).items()} == {"axis": int, "the-mode": str}
