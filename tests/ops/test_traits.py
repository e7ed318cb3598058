"""What operations declare for code outside of them."""

import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from fuzz.cases import VERSIONS, make_case
from support.builder import Net

import ovir
from ovir.analysis.random_inputs import generate_inputs, input_domains
from ovir.core.tensor_types import constant_type
from ovir.ops import find
from ovir.ops.base.domains import Domain, Index, by_input
from ovir.ops.base.opsets import OPERATIONS
from ovir.ops.base.traits import Signature, Traits, input_names, method_signature
from ovir.ops.infrastructure import Parameter

PACKAGE = Path(ovir.__file__).parent
CLASSES = [cls for name, births in OPERATIONS.items() for birth in births if (cls := find(name, birth))]


def test_declarations_name_inputs_and_attributes() -> None:
    for cls in CLASSES:
        names = set(input_names(cls))
        assert set(cls.domains) <= names, cls
        for rule in cls.domains.values():
            for field in ("into", "of", "count"):
                assert getattr(rule, field, None) in {None, *names}, cls
            axis = getattr(rule, "axis", None)
            assert axis is None or isinstance(axis, int) or axis in names | cls.fields, cls
        for position in (
            *cls.moves_elements,
            *cls.forwards_values,
            *cls.decompresses,
            *cls.same_types,
            *cls.exact_inputs,
        ):
            assert position == -1 or position < len(names), cls


@pytest.mark.parametrize(
    ("operation", "opset", "negative"),
    [
        ("Gather", 1, "unspecified"),
        ("Gather", 7, "unspecified"),
        ("Gather", 8, "from the end"),
        ("GatherND", 5, "unspecified"),
        ("GatherND", 8, "from the end"),
        ("ScatterUpdate", 3, "forbidden"),
        ("ScatterElementsUpdate", 3, "unspecified"),
        ("ScatterElementsUpdate", 12, "from the end"),
        ("EmbeddingBagPacked", 15, "forbidden"),
    ],
)
def test_negative_indices(operation: str, opset: int, negative: str) -> None:
    cls = find(operation, opset)
    assert cls is not None
    assert getattr(cls.domains["indices"], "negative") == negative  # noqa: B009  (rules may be any function)


def test_every_trait_is_named_in_the_documentation() -> None:
    page = (PACKAGE.parent / "docs" / "operation-classes.md").read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    traits = {name for name in {**vars(Traits), **Traits.__annotations__} if not name.startswith("_")}
    assert sorted(traits - named) == []


STRUCTURAL = {"Parameter", "Result", "Const", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}
"""Operations that make the structure of a model: its ends, its constants, its state and its bodies."""
NAMING = {
    *("ir/executed.py", "ir/legacy.py", "ir/writing/compression.py", "graph/layers.py"),
    *("inference/layer_weights.py", "inference/pinned_sizes.py", "runtime/rewrites.py"),
    *("editing/batch.py", "editing/simplification.py", "editing/states.py", "editing/preprocessing.py"),
    *("checks/conditions.py", "checks/rules/devices.py", "debugging/compare.py", "debugging/edit_proof.py"),
    *("debugging/f32_layers.py", "cli/terminal/quantization.py", "cli/operations.py"),
}
"""Modules that create or describe layers, list the operations of extensions, know what OpenVINO does to layers or what compressors
and quantizers write, reason about conditions, or rewrite steps of a plan."""


def named_operations(path: Path) -> set[str]:
    """Return the operations that a module names in strings or imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    classes = {a.name for node in imports if (node.module or "").startswith("ovir.ops.") for a in node.names}
    return strings & OPERATIONS.keys() | classes & {cls.__name__ for cls in CLASSES}


@pytest.mark.slow
def test_code_outside_of_ops_names_structural_operations_only() -> None:
    inside = ("ops", "tokenizers", "fast", "export", "lowering", "fuzzing")
    paths = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}
    outside = {name.as_posix(): path for name, path in paths.items() if name.parts[0] not in inside}
    faults = {name for name, path in outside.items() if named_operations(path) - STRUCTURAL}
    assert faults == NAMING, "let the operation declare a trait instead: ovir/ops/base/traits.py"


LIMITED = [
    (index, cls)
    for index, version in enumerate(VERSIONS)
    if (cls := find(*version)) and cls.within != (-np.inf, np.inf)
]


@pytest.mark.parametrize(("index", "cls"), LIMITED, ids=lambda value: getattr(value, "__name__", ""))
def test_no_element_lies_outside_of_what_an_operation_declares(index: int, cls: type[ovir.Operator]) -> None:
    compared = 0
    for attempt in range(20):
        case = make_case(index + attempt * len(VERSIONS), extreme=attempt % 2 == 1)
        try:
            model = ovir.read_model(case.text, case.weights)
            results = ovir.compile_model(model)(case.feeds).values()
        except ovir.OvirError:
            continue
        (layer,) = (layer for layer in model.layers if type(layer.operator) is cls)
        read = cls.with_elements_read([port.element_type for port in layer.inputs])
        for port, array in zip(model.outputs, results, strict=True):
            if port.element_type.is_real or port.element_type not in read:
                found = array[~np.isnan(array)].astype(np.float64)
                margin = 1e-2 if array.dtype.itemsize <= 2 else 1e-6
                assert ((found >= cls.within[0] - margin) & (found <= cls.within[1] + margin)).all(), (
                    case.feeds,
                    array,
                )
                compared += found.size
    assert compared


def test_an_operation_of_the_user_declares_domains() -> None:
    @ovir.register("PickRow", version="extension")
    class PickRow(ovir.Operator):
        """The row of ``table`` that ``index`` names."""

        domains = by_input(index=Index("table", axis=0))

        def infer(self, table: ovir.TensorType, index: ovir.TensorType) -> ovir.TensorType:
            return ovir.TensorType(table.element_type, table.shape.slice(1) + index.shape)

        def run(self, table: np.ndarray, index: np.ndarray) -> np.ndarray:
            return table[index]

    net = Net()
    table = net.const(np.arange(6, dtype=np.float32).reshape(3, 2))
    net.result(net.op("PickRow", table, net.parameter("i", "", "i64")))
    xml = net.xml().replace('type="PickRow" version="opset1"', 'type="PickRow" version="extension"')
    model = ovir.read_model(xml.encode(), bytes(net.blob))
    (domain,) = input_domains(model).values()
    assert (domain.low, domain.high) == (0, 2)
    assert 0 <= int(generate_inputs(model)[0].array) <= 2


def test_constants_are_held_against_the_axis_that_they_index() -> None:
    rule = Index("table", absent=-1)
    inputs = {"table": constant_type(np.zeros((3, 2)))}
    ((values, size),) = rule.parts(CLASSES[0](), inputs, np.array([0, -1, 4]))
    assert (values.tolist(), size) == ([0, 4], 3)
    assert list(Index("table", checked=False).parts(CLASSES[0](), inputs, np.array([9]))) == []


def test_domains_meet_in_the_numbers_of_both() -> None:
    """Domains that have no number in common leave the lower end of the first, or of the second if it has none."""
    domains = [Domain(low, high) for low in (None, 0, 1, 3) for high in (None, 0, 1, 3) if low is None or high is None or low <= high]  # fmt: skip

    def numbers(domain: Domain) -> set[int]:
        low, high = (end if x is None else int(x) for x, end in ((domain.low, -9), (domain.high, 9)))
        return set(range(low, high + 1))

    for one, other in itertools.product(domains, domains):
        common = numbers(one) & numbers(other)
        left = one.low if one.low is not None else other.low
        assert numbers(one.meet(other)) == (common or {left}), (one, other)


@pytest.mark.parametrize(
    ("one", "other", "order", "why"),
    [
        (Domain(0, 2, "sorted", "a"), Domain(0, 2, "offsets", "b"), "sorted", "a"),
        (Domain(0, 2, "any", "a"), Domain(0, 2, "offsets", "b"), "offsets", "a"),
        (Domain(0, 2, "sorted"), Domain(0, 2, "any", "b"), "sorted", "b"),
    ],
)
def test_the_order_and_reason_of_domains_that_meet(one: Domain, other: Domain, order: str, why: str) -> None:
    assert one.meet(other) == Domain(0, 2, order, why)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0, 6, "0..6"), (3, 3, "3"), (None, 3, "..3"), (-1, None, "-1.."), (0.5, 1, "0.5..1")]
)
def test_a_domain_as_text(low: float | None, high: float | None, text: str) -> None:
    assert str(Domain(low, high)) == text


def test_a_long_chain_of_layers_that_move_values() -> None:
    net = Net()
    x = tail = net.parameter("x", "2,3", "i64")
    for _ in range(1100):
        tail = net.op("Transpose", tail, net.const([1, 0], "i64"))
    net.result(net.op("Gather", net.const(np.zeros(5, np.float32)), tail, net.const(0, "i64"), opset=8, name="pick"))
    model = net.model()
    assert input_domains(model) == {model.inputs[x[0]]: Domain(0, 4, why="Gather 'pick'")}


def test_signatures() -> None:
    def infer(self: object, data: object, axes: object = None, *more: object, bodies: object) -> None: ...

    assert method_signature(infer) == Signature(("data", "axes"), 1, True, frozenset({"bodies"}))
    assert method_signature(Parameter.infer) == Signature((), 0, False, frozenset())
