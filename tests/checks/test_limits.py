"""Files at the limits of rules: what is just allowed, and one more."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.checks.untrusted import budget, paths, xml_scan
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.xml_scan import scan


def of_rt_info(count: int, text: str) -> str:
    return f"<net><rt_info>{text * count}</rt_info></net>"


LIMITS = {
    "depth": (xml_scan.DEEPEST, lambda n: "<a>" * n + "</a>" * n),
    "depth of other tags": (
        xml_scan.DEEPEST,
        lambda n: "".join(f"<a{i}>" for i in range(n)) + "".join(f"</a{i}>" for i in reversed(range(n))),
    ),
    "tags": (xml_scan.MOST_TAGS, lambda n: "<a>" + "".join(f"<a{i}/>" for i in range(n - 1)) + "</a>"),
    "attributes": (xml_scan.MOST_ATTRIBUTES, lambda n: "<a " + " ".join(f"a{i}=''" for i in range(n)) + "/>"),
    "an attribute": (xml_scan.LONGEST_TEXT, lambda n: f"<a b='{'x' * n}'/>"),
    "a text": (xml_scan.LONGEST_TEXT, lambda n: of_rt_info(1, "x" * n)),
    "texts": (xml_scan.MOST_WORDS, lambda n: f"<a><b>{'x' * 1000}</b><b>{'x' * (n - 1000)}</b></a>"),
    "comments": (xml_scan.MOST_COMMENTS, lambda n: f"<a><!--{'x' * 1000}--><b/><!--{'x' * (n - 1000)}--></a>"),
    "elements": (xml_scan.MOST_OTHERS, lambda n: "<a>" + "<b/>" * (n - 1) + "</a>"),
    "layers": (xml_scan.MOST_ELEMENTS["layer"], lambda n: "<a>" + "<layer/>" * n + "</a>"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_what_is_out_of_proportion_in_a_topology(name: str) -> None:
    limit, make = LIMITS[name]
    for count, codes in ((limit, []), (limit + 1, ["OVIR006"])):
        found, is_endless = scan(make(count).encode(), "model.xml")
        assert [d.code for d in found] == codes
        assert is_endless == (name == "tags" and count > limit)
    assert f"{limit:,}" in found[0].message or str(limit) in found[0].message


FOLDER = "<{0}><input_model>/home/models/a</input_model></{0}>"


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('<layer id="0" name="a/b.so" type="Const" version="opset1"/>', []),
        ('<layer id="0" name="a" type="Const" version="a/b.so"/>', [("error", "<layer> names a library: 'a/b.so'")]),
        ("<rt_info><a value='a/b.so'/></rt_info>", [("error", "<a> names a library: 'a/b.so'")]),
        ("<rt_info><a name='a/b.so'/></rt_info>", []),
        ("<edge x='a/b.so'/>", []),
        ("<p><a>~/x</a></p><rt_info><p><a>~/x</a></p></rt_info>", [("error", "<a> names a path: '~/x'")]),
        ("<layer id='0' type='SoftMax' version='opset1'><data axis='01'/></layer>", [("error", "the attribute 'axis' of <data> is spelled '01'")]),
        ("<layer id='0' type='SoftMax' version='opset1'/><other><data axis='01'/></other>", []),
        ("<rt_info><a>~/x</a><b>$(ls)</b><c>~/y</c></rt_info>", [("error", "<a> names a path: '~/x'; and 1 other text"), ("error", "<b> names a command: '$(ls)'")]),
        (f"<rt_info>{FOLDER.format('conversion_parameters')}</rt_info>", [("warning", "<input_model> names a folder of its converter: '/home/models/a'")]),
        (f"<rt_info>{FOLDER.format('others')}</rt_info>", [("error", "<input_model> names a path: '/home/models/a'")]),
        (f"<rt_info>{FOLDER.format('cli_parameters').replace('/home', '/etc')}</rt_info>", [("error", "<input_model> names a path: '/etc/models/a'")]),
        (f"<rt_info>{FOLDER.format('cli_parameters')}{FOLDER.format('others')}</rt_info>", [("warning", "<input_model> names a folder of its converter: '/home/models/a'"), ("error", "<input_model> names a path: '/home/models/a'")]),
        ("<rt_info><a>https://a.org/b</a></rt_info>", []),
        ("<layers><layer id='1'><data a='https://a.org/b'/></layer></layers>", [("error", "<data> names an address: 'https://a.org/b'")]),
        ("<layers><layer id='01'/></layers>", [("error", "the attribute 'id' of <layer> is spelled '01'")]),
        ("<port><dim> 3</dim><dim>3</dim><dim></dim></port>", [("error", "the text of <dim> is spelled '3'; and 1 other text")]),
        ("<layer name='a&#x202E;b'/>", [("error", "the attribute 'name' of <layer> has U+202E, RIGHT-TO-LEFT OVERRIDE")]),
    ],
)  # fmt: skip
def test_texts_of_a_topology(inside: str, expected: list[tuple[str, str]]) -> None:
    found, _ = scan(f"<net>{inside}</net>".encode(), "model.xml")
    assert [(str(d.severity), d.message) for d in found] == expected


PLACES = {
    "<net>\n<a>/etc/passwd</a></net>": [],
    "<net><rt_info>/etc/passwd</rt_info></net>": ["1: <rt_info> names a path: '/etc/passwd'"],
    "<net>\n<data>\n<a>/etc/passwd</a></data></net>": ["3: <a> names a path: '/etc/passwd'"],
    "<!-- a --><net/>": [],
    "<net><!-- a --></net>": [],
    "<net/>\n<!--ab-->": ["2: a comment of 2 characters follows the model"],
    "<net>word<!-- a --> </net>": [],
    "<net><!-- a -->word</net>": ["1: a comment is in the text of <net>, which some readers end there"],
    "<net>word<!-- a -->word</net>": ["1: a comment is in the text of <net>, which some readers end there"],
    "<net>word\n<a/></net>": ["2: the element <a> is in the text of <net>, which some readers end there"],
    "<net> \n<a/></net>": [],
    "<net><![CDATA[x]]></net>": ["1: a CDATA section in <net>, which readers resolve differently"],
    "<net/><?other x?>": ["1: the processing instruction <?other?>"],
    '<net/><?ovir-weights size="12" crc32="0123abcd"?>': [],
    '<net/><?ovir-weights size="12" crc32="0123abcd" ?>': ["1: <?ovir-weights?> holds something else than the size and the checksum of one .bin"],
    '<net/><?ovir-weights size="1" crc32="0123abcd"?><?ovir-weights size="1" crc32="0123abcd"?>': ["1: <?ovir-weights?> holds something else than the size and the checksum of one .bin"],
    '<net xmlns="a"/>': ["1: <net> has the attribute 'xmlns' of a namespace"],
    '<net a:b="c"/>': ["1: <net> has the attribute 'a:b' of a namespace"],
    "<a:net/>": ["1: <a:net> is an element of a namespace"],
    '<net a="http://www.w3.org/2001/XInclude"/>': ["1: <net> names XInclude, which reads other files"],
    "<!DOCTYPE net><net/><?x y?>": ["1: the processing instruction <?x?>"],
    "<!DOCTYPE net []><net/><?x y?>": ["1: the DOCTYPE has declarations, which readers resolve differently"],
    "<net>\n</nets>": ["2: not well-formed XML: mismatched tag: line 2, column 2; other readers may accept it and what follows"],
    '<?xml version="1.0" encoding="no-such"?><net/>': ["1: the topology is in no-such; a scanner and a reader may see different texts in it", "1: not well-formed XML: unknown encoding: no-such; other readers may accept it and what follows"],
    '<?xml version="1.0" encoding="ASCII"?><net/>': [],
    '<net><port id="1"/><port id="01"/><edge to-port="01"/></net>': ["1: the attribute 'id' of <port> is spelled '01'; and 1 other text"],
}  # fmt: skip
"""The diagnostics of a scan, each with its line, by the text of the topology."""


@pytest.mark.parametrize("text", PLACES)
def test_what_a_scan_reports(text: str) -> None:
    found, is_endless = scan(text.encode(), "model.xml")
    assert [f"{d.line}: {d.message}" for d in found] == PLACES[text]
    assert {d.file for d in found} <= {"model.xml"}
    assert not is_endless


@pytest.mark.parametrize(("size", "is_reported"), [(900, False), (1101, True)])
def test_tokens_that_take_a_reader_minutes(size: int, is_reported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token may be one chunk longer than the limit, because it is looked for after each chunk.

    Newer releases of expat do not begin again with each chunk, and report the place of the one before.
    """
    monkeypatch.setattr(xml_scan, "_CHUNK", 100)
    monkeypatch.setattr(xml_scan, "_LONGEST_TOKEN", 1000)
    for before in ("", "<!-- a -->"):
        comment = f"<!--{'x' * (size - 7 - len(before) % 100)}-->"
        found, is_endless = scan(f"{before}{comment}<net/>".encode(), "model.xml")
        assert ([d.message for d in found], is_endless) == (
            (["a tag, a comment or an instruction has more than 1,000 bytes"], True) if is_reported else ([], False)
        )


@pytest.mark.parametrize(("count", "is_endless"), [(1001, False), (20_000, False), (20_001, True)])
def test_attributes_that_take_a_reader_minutes(count: int, is_endless: bool) -> None:
    attributes = " ".join(f"a{i}=''" for i in range(count))
    found = scan(f"<a {attributes}/>".encode(), "model.xml")
    assert ([d.message for d in found[0]], found[1]) == ([f"<a> has {count:,} attributes, more than 1,000"], is_endless)


def test_elements_of_each_tag_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_scan, "MOST_ELEMENTS", {"layer": 3, "edge": 5})
    monkeypatch.setattr(xml_scan, "MOST_OTHERS", 4)
    monkeypatch.setattr(xml_scan, "_FEWEST", 3)
    layers, edges = "the file has more than 3 <layer> elements", "the file has more than 5 <edge> elements"
    others = "the file has more than 4 elements of other tags than layers, ports and edges have, such as <{}>"
    for inside, expected in {
        "<layer/>" * 3 + "<edge/>" * 5 + "<a/><b/><a/>": [],
        "<layer/>" * 4: [layers],
        "<edge/>" * 5: [],
        "<edge/>" * 6: [edges],
        "<layer/>" * 4 + "<edge/>" * 6: [layers],
        "<a/><a/><a/><a/>": [others.format("a")],
        "<a/><b/><a/><c/>": [others.format("c")],
    }.items():
        found, is_endless = scan(f"<net>{inside}</net>".encode(), "model.xml")
        assert ([d.message for d in found], is_endless) == (expected, False)


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"", None),
        (b"\xef\xbb\xbf", None),
        (b'<?xml version="1.0" encoding="UTF-8"?>', None),
        (b"<?xml version=\"1.0\" encoding = 'us-ascii'?>", None),
        (b'\xef\xbb\xbf<?xml version="1.0" encoding="utf8"?>', None),
        (b'<?xml version="1.0" encoding="utf-7"?>', "utf-7"),
        (b'<?xml encoding="' + b"x" * 50 + b'"?>', "x" * 40),
        (b"\xff\xfe<\0", "UTF-16"),
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\x4c\x6f\xa7\x94", "EBCDIC"),
    ],
)
def test_foreign_encodings(head: bytes, encoding: str | None) -> None:
    assert xml_scan.foreign_encoding(head + b"<net/>") == encoding


# --------------------------------------------------------------------------- files and budgets


def state(size: int, blocks: int | None) -> SimpleNamespace:
    return SimpleNamespace(st_size=size, **({} if blocks is None else {"st_blocks": blocks}))


@pytest.mark.parametrize(
    ("size", "blocks", "seconds"),
    [(0, 0, 30), (2 * 10**9, 10**9, 60), (2 * 10**9, None, 60), (10**12, 10**6, 30 + 15 * 0.512)],
)
def test_the_time_of_a_check(size: int, blocks: int | None, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holes in the weights take no time."""
    monkeypatch.setattr(budget, "os", SimpleNamespace(lstat=lambda path: state(size, blocks)))
    assert Budget().seconds_for("model.bin") == pytest.approx(seconds)
    assert Budget(seconds=7).seconds_for("model.bin") == 7


def test_the_time_of_a_check_without_weights() -> None:
    assert Budget().seconds_for("no-such.bin") == 30


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("seconds", [0.001, 1_000_000], [0, -1, 1_000_000.1, float("nan")]),
        ("memory", [1 << 24, 1 << 50], [(1 << 24) - 1, (1 << 50) + 1]),
    ],
)
def test_the_limits_of_budgets(name: str, allowed: list[float], refused: list[float]) -> None:
    assert [getattr(Budget(**{name: value}), name) for value in allowed] == allowed
    for value in refused:
        with pytest.raises(ovir.InputError, match=f"{name} must be"):
            Budget(**{name: value})


@pytest.mark.parametrize(
    ("size", "stored", "is_fault"),
    [
        ((1 << 26) - 512, 0, False),
        (1 << 26, 0, True),
        (1 << 26, (1 << 22) - 512, True),
        (1 << 26, 1 << 22, True),
        (1 << 26, (1 << 22) + 512, False),
        (1 << 40, 1 << 35, True),
    ],
)
def test_files_of_which_hardly_anything_is_on_the_disk(
    size: int, stored: int, is_fault: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "os", SimpleNamespace(lstat=lambda path: state(size, stored // 512)))
    assert (paths.sparse_fault("model.bin") is not None) == is_fault


# --------------------------------------------------------------------------- files that are also read


def codes(net: Net, *, blob: bytes = b"") -> list[tuple[str, str]]:
    return [(d.code, str(d.severity)) for d in ovir.check(net.xml(), bytes(net.blob) + blob)]


@pytest.mark.parametrize(("rest", "severity"), [(63, None), (64, "info"), (65, "warning")])
def test_unused_bytes(rest: int, severity: str | None) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "48"), net.const(np.arange(1, 49, dtype=np.float32))))
    assert codes(net, blob=bytes(rest)) == ([("OVIR508", severity)] if severity else [])


@pytest.mark.parametrize(("count", "last", "is_found"), [(1 << 14, 0, True), (1 << 14, 1, False), (4095 * 4, 0, False)])
def test_equal_constants(count: int, last: int, is_found: bool) -> None:
    net = Net()
    numbers = np.arange(1, count + 1, dtype=np.float32)
    x = net.parameter("x", str(count))
    for more in (0, last):
        numbers[-1] += more
        x = net.op("Add", x, net.const(numbers.copy()))
    net.result(x)
    assert codes(net) == ([("OVIR705", "info")] if is_found else [])


@pytest.mark.parametrize(
    ("zeros", "others", "count"), [(2, 0, 2), (3, 0, 1), (8, 1, 8), (9, 1, 1), (17, 2, 17), (18, 2, 1)]
)
def test_weights_that_are_mostly_zero(zeros: int, others: int, count: int) -> None:
    net = Net()
    x = net.parameter("x", "2,4")
    for number in range(zeros + others):
        x = net.op("MatMul", x, net.const(np.full((4, 4), float(number >= zeros) * number, np.float32)))
    net.result(x)
    found = ovir.check(net.xml(), bytes(net.blob))
    more = re.search(r"; (\d+) more of this kind", found[0].message)
    assert {d.code for d in found} == {"OVIR518"}
    assert len(found) + (int(more[1]) if more else 0) == count


@pytest.mark.parametrize(("failing", "others", "errors"), [(2, 0, 2), (3, 0, 1), (3, 3, 1), (3, 4, 3), (5, 5, 1)])
def test_a_constant_that_most_of_its_readers_refuse(failing: int, others: int, errors: int) -> None:
    net = Net()
    axis = net.const(np.array([7]))
    for shape, count in (("2,3", failing), ("1,1,1,1,1,1,1,2", others)):
        for number in range(count):
            net.result(net.op("ReduceSum", net.parameter(f"x{count}{number}", shape), axis, keep_dims="true"))
    found = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.severity is ovir.Severity.ERROR]
    assert len(found) == errors
    hint = f"{failing - 1} other layers that read layer 0 'const0' (Const, opset1) fail: its value may be wrong"
    assert ((found[0].layer_id, found[0].hint) == (2, hint)) == (errors == 1)


@pytest.mark.parametrize(
    ("count", "more"),
    [(1, ""), (2, "; 1 more error of the same cause: r1"), (4, "; 3 more errors of the same cause: r1, r2, r3"), (6, "; 5 more errors of the same cause: r1, r2, r3, ...")],
)  # fmt: skip
def test_errors_of_one_cause_are_named_in_the_first(count: int, more: str) -> None:
    net = Net()
    net.parameter("small", "2,3")
    x = net.op("ReLU", net.parameter("large", "4,5"), name="relu")
    for number in range(count):
        shape = net.const(np.array([20]))
        net.result(net.op("Reshape", x, shape, name=f"r{number}", special_zero="false"))
    text = net.declared_xml().replace(
        '<edge from-layer="1" from-port="0" to-layer="2"', '<edge from-layer="0" from-port="0" to-layer="2"'
    )
    found = [d for d in ovir.check(text, bytes(net.blob)) if d.severity is ovir.Severity.ERROR]
    assert [d.code for d in found] == ["OVIR401"]
    message = re.sub(r"layer \d+ '(r\d)' \(Reshape, opset1\)", r"\1", found[0].message)
    assert message.endswith(more)
    assert "this follows from layer 2 'relu' (ReLU, opset1) on line " in message


@pytest.mark.parametrize(
    ("kind", "count", "size"), [("f32", 1 << 31, 1 << 33), ("u1", 1 << 34, 1 << 31), ("u8", 1 << 30, 0)]
)
def test_tensors_beyond_the_memory_of_the_machine(
    kind: str, count: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net()
    net.result(net.op("Broadcast", net.const(1, kind), net.const([count]), opset=3, mode="numpy"))
    for memory in (max(size, 1) - 1, size):
        monkeypatch.setattr("ovir.checks.rules.constants.physical_memory", lambda memory=memory: memory)
        assert (("OVIR412", "warning") in codes(net)) == (memory < size)


def test_tensors_of_fewer_bytes_than_an_input_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.checks.rules.constants.physical_memory", lambda: 0)
    for other, count in (([[1, 2]], 1), ([[1] * 5], 2)):
        net = Net()
        x = net.op("Broadcast", net.const(1, "i32"), net.const([1 << 31, 1]), opset=3, mode="numpy")
        net.result(net.op("Greater", x, net.const(other, "i32")))  # a byte for each element
        assert codes(net).count(("OVIR412", "warning")) == count


@pytest.mark.parametrize(
    ("kind", "count", "needed"),
    [("u3", 8, 3), ("u3", 9, 6), ("u6", 4, 3), ("u6", 5, 6), ("u4", 3, 2), ("u1", 9, 2), ("f32", 3, 12)],
)
def test_bytes_that_a_constant_needs(kind: str, count: int, needed: int) -> None:
    for more in (0, 1):
        net = Net()
        net.blob += bytes(range(1, needed + 2))
        net.result(net.op("Const", element_type=kind, shape=str(count), offset="0", size=str(needed + more)))
        assert [code for code, _ in codes(net)] == ["OVIR504"] * more
