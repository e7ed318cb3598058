"""`ovir.diff` of models with bodies: the layers in them, and how they are joined to the layer around them."""

from __future__ import annotations

import numpy as np
import pytest
from builder import ITERATOR, RELU, RESULT, document, layer_text
from diff_graphs import statuses, whats

import ovir

PARAMETER = '<data shape="1,4" element_type="f32"/><output><port id="0" precision="FP32"/></output>'


def iterator(text: str = ITERATOR) -> ovir.Model:
    layers = (
        f'<layer id="1" name="loop" type="TensorIterator" version="opset1">{text}</layer>',
        layer_text(2, "Result", RESULT),
    )
    return ovir.read_model(document(*layers, edges="0.0-1.0 1.1-2.0"))


def test_equal_bodies() -> None:
    assert not ovir.diff(iterator(), iterator())


def test_a_layer_of_a_body() -> None:
    found = ovir.diff(iterator(), iterator(ITERATOR.replace('type="ReLU"', 'type="Exp"')))
    assert statuses(found) == {"replaced": ["loop/body/n1"]}
    assert whats(found) == ["type: ReLU -> Exp"]
    assert found.to_dict()["layers"][0]["b"]["key"] == "loop/body/n1"


def test_a_layer_inserted_into_a_body() -> None:
    exp = layer_text(5, "Exp", RELU)
    after = ITERATOR.replace("</layers>", f"{exp}</layers>").replace(
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>',
        '<edge from-layer="1" from-port="1" to-layer="5" to-port="0"/>'
        '<edge from-layer="5" from-port="1" to-layer="2" to-port="0"/>',
    )
    found = ovir.diff(iterator(), iterator(after))
    assert statuses(found) == {"added": ["loop/body/n5"]}
    assert found.added[0].place == "between 'loop/body/n1' and 'loop/body/n2'"


def test_port_map() -> None:
    after = ITERATOR.replace('axis="0" part_size="1"/>\n', 'axis="0" start="-1" end="0" stride="-1" part_size="1"/>\n')
    assert after != ITERATOR
    assert whats(ovir.diff(iterator(), iterator(after))) == [
        "port map body: [input 0 to 'n0' (axis 0, start 0, end -1, stride 1, part_size 1)] -> "
        "[input 0 to 'n0' (axis 0, start -1, end 0, stride -1, part_size 1)]"
    ]


CARRIED = f"""<input><port id="0" precision="FP32"/><port id="1" precision="FP32"/></input>
<output><port id="2" precision="FP32"/></output>
<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1"/>
<input external_port_id="1" internal_layer_id="1"/>
<output external_port_id="2" internal_layer_id="3"/></port_map>
<back_edges><edge from-layer="3" to-layer="1"/></back_edges>
<body><layers>
{layer_text(0, "Parameter", PARAMETER)}
{layer_text(1, "Parameter", PARAMETER)}
{layer_text(2, "Add", '<input><port id="0" precision="FP32"/><port id="1" precision="FP32"/></input><output><port id="2" precision="FP32"/></output>')}
{layer_text(3, "Result", RESULT)}
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></body>"""


def carrying(text: str = CARRIED) -> ovir.Model:
    initial = '<data shape="1,4" element_type="f32"/><output><port id="0" precision="FP32"/></output>'
    layers = (
        layer_text(5, "Parameter", initial),
        f'<layer id="1" name="loop" type="TensorIterator" version="opset1">{text}</layer>',
        layer_text(2, "Result", RESULT),
    )
    return ovir.read_model(document(*layers, edges="0.0-1.0 5.0-1.1 1.2-2.0"))


def test_back_edges() -> None:
    found = ovir.diff(carrying(), carrying(CARRIED.replace('<edge from-layer="3" to-layer="1"/>', "")))
    assert whats(found) == ["back edges body: ['n3' to 'n1'] -> []"]


@pytest.mark.parametrize("seed", range(3))
def test_parameters_of_a_body_in_another_order(seed: int) -> None:
    """Ids, names and the order of parameters in a body mean nothing; the port map does."""
    numbers = dict(zip("0123", map(str, np.random.default_rng(seed).permutation([7, 8, 9, 6])), strict=True))
    lines = CARRIED.split("\n")
    lines[7], lines[8] = lines[8], lines[7]
    head, layers = "\n".join(lines).split("<body>")
    for old, new in numbers.items():
        layers = layers.replace(f'layer id="{old}" name="n{old}"', f'layer id="#{new}" name="#{new}"')
        for end in ("from", "to"):
            layers = layers.replace(f'{end}-layer="{old}"', f'{end}-layer="#{new}"')
            head = head.replace(f'{end}-layer="{old}"', f'{end}-layer="#{new}"')
        head = head.replace(f'internal_layer_id="{old}"', f'internal_layer_id="#{new}"')
    after = carrying(f"{head}<body>{layers}".replace("#", ""))
    assert not ovir.diff(carrying(), after, ignore_names=True)
    assert {change.what for entry in ovir.diff(carrying(), after).layers for change in entry.changes} == {"name"}


def test_a_body_that_changes_affects_what_reads_it() -> None:
    def model(size: int) -> ovir.Model:
        text = ITERATOR.replace('shape="1,4"', f'shape="{size},4"').replace('part_size="1"', f'part_size="{size}"')
        return iterator(text)

    found = ovir.diff(model(1), model(2))
    assert whats(found, ["loop/body/n0"]) == ["attribute shape: [1,4] -> [2,4]"]
    assert [item.b.key for item in found.affected] == ["loop/body/n1"]
