"""Operations that a plan puts in place of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ovir
from ovir.ops.base.operator import Operator
from ovir.ops.base.replacement import Replacement, replacements
from ovir.ops.compressed import Compressed
from ovir.ops.matmul import MatMul
from ovir.runtime.rewrites import Rewrite

PACKAGE = Path(ovir.__file__).parent


def derived(cls: type[Any]) -> Iterator[type[Any]]:
    for one in cls.__subclasses__():
        yield one
        yield from derived(one)


def test_only_replacements_copy_the_attributes_of_another_operation() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    copying = [path.name for path, text in texts.items() if "type=op.type" in text]
    assert copying == ["replacement.py"]


@pytest.mark.parametrize("base", [Compressed, Rewrite])
def test_what_may_replace_an_operation(base: type[Replacement[Any]]) -> None:
    found = {cls for op in derived(Operator) for cls in replacements(base, op)}  # type: ignore[arg-type]
    assert found
    assert all(issubclass(cls, base) for cls in found)
    for op in derived(MatMul):
        assert replacements(base, op) == replacements(base, MatMul)  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", [cls for cls in derived(Replacement) if cls not in (Compressed, Rewrite)])
def test_a_replacement_is_of_the_type_and_version_that_it_replaces(cls: type[Any]) -> None:
    op = MatMul(transpose_b=True)
    new = cls.__new__(cls)
    Replacement.__init__(new, op)
    assert (new.type, new.opset, new.transpose_b, new.replaced) == (op.type, op.opset, True, op)
    assert new.applied([], []).replaced is op
