"""Hostile files, each of which is an error of the profile for untrusted files, and honest ones, which are not."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuzz import untrusted
from support import mutants
from support.bodies import choice
from support.builder import Net, add_net
from support.hostile import HONEST, TRICKS

import ovir
from ovir import opset13 as ops
from ovir.checks.options import CheckOptions
from ovir.checks.rules import CODES
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.check_file import check_file
from ovir.checks.untrusted.gate import find_untrusted
from ovir.checks.untrusted.guard import _LONGEST as LONGEST_ANSWER
from ovir.checks.untrusted.guard import Guard

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "xml"


XML = add_net().xml()
BLOB = bytes(add_net().blob)


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    with Guard(CheckOptions(), Budget(seconds=20)) as opened:
        yield opened


def written(folder: Path, xml: str | bytes = XML, blob: bytes | None = BLOB) -> Path:
    path = folder / "model.xml"
    path.write_bytes(xml.encode() if isinstance(xml, str) else xml)
    if blob is not None:
        path.with_suffix(".bin").write_bytes(blob)
    return path


def checked(path: Path, skip: tuple[str, ...] = ()) -> list[ovir.Diagnostic]:
    """Return the diagnostics of a file, which is checked in this process, within a few seconds."""
    start = time.monotonic()
    found = check_file(str(path), None, CheckOptions(skip=skip))
    assert time.monotonic() - start < 10
    return found


def errors(found: list[ovir.Diagnostic]) -> set[str]:
    return {d.code for d in found if d.severity is ovir.Severity.ERROR}


def after_declaration(text: str) -> str:
    return XML.replace("?>", f"?>{text}", 1)


def changed(old: str, new: str) -> str:
    assert old in XML
    return XML.replace(old, new)


def with_rt_info(text: str) -> str:
    return XML.replace("</net>", f"<rt_info>{text}</rt_info></net>").replace("<rt_info/>", "")


BOMB = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
EDGES = "".join(f'<edge from-layer="{i + 70}" from-port="0" to-layer="2" to-port="0"/>' for i in range(3000))
MANY = " ".join(f"a{i}=''" for i in range(2000))
HOSTILE_XML: dict[str, tuple[str, str | bytes]] = {
    "duplicate ids": ("OVIR204", changed('<layer id="2"', '<layer id="1"')),
    "external entity": (
        "OVIR107",
        after_declaration('<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/passwd">]>').replace("data", "&x;", 1),
    ),
    "parameter entity": ("OVIR107", after_declaration('<!DOCTYPE net [<!ENTITY % x SYSTEM "http://127.0.0.1:9/a">]>')),
    "entity bomb": ("OVIR107", after_declaration(f'<!DOCTYPE net [<!ENTITY a0 "lol">{BOMB}]>')),
    "external DTD": ("OVIR108", after_declaration('<!DOCTYPE net SYSTEM "http://127.0.0.1:9/x.dtd">')),
    "address behind an element": ("OVIR009", with_rt_info("<a/>file:///srv/labels.txt")),
    "junk after the model": ("OVIR102", f"{XML}junk"),
    "zeros after the model": ("OVIR102", XML.encode() + bytes(16)),
    "a second model": ("OVIR102", XML + XML.split("?>")[1]),
    "UTF-16": ("OVIR005", XML.replace('<?xml version="1.0"?>', "").encode("utf-16")),
    "Latin-1": ("OVIR005", XML.replace('version="1.0"?', 'version="1.0" encoding="iso-8859-1"?')),
    "compressed": ("OVIR102", gzip.compress(XML.encode())),
    "an archive": ("OVIR102", b"PK\x03\x04" + bytes(100)),
    "very deep elements": ("OVIR006 OVIR102", with_rt_info("<a>" * 100_000 + "</a>" * 100_000)),
    "many attributes": ("OVIR006", with_rt_info(f"<a {MANY}/>")),
    "many tags": ("OVIR001 OVIR006", with_rt_info("".join(f"<a{i}/>" for i in range(2000)))),
    "many faults": ("OVIR006 OVIR206", changed("</edges>", EDGES + "</edges>")),
    "8 TB": ("OVIR007 OVIR503", changed('shape="3"', 'shape="2000000,1000000,1"')),
    "more than 64 bits": ("OVIR017 OVIR411", changed('shape="3"', f'shape="{2**62},{2**62},1"')),
    "extension": ("OVIR221", changed('type="Add" version="opset1"', 'type="Evil" version="extension"')),
    "unknown opset": ("OVIR202", changed('type="Add" version="opset1"', 'type="Evil" version="evil"')),
    "unknown operation": ("OVIR201", changed('type="Add"', 'type="Evil"')),
    "library as a version": ("OVIR009 OVIR202", changed('type="Add" version="opset1"', 'type="Evil" version="./libevil.so"')),
    "library": ("OVIR009", with_rt_info('<extension value="libevil.so.1"/>')),
    "path": ("OVIR009", with_rt_info('<input_model value="/home/ann/model.onnx"/>')),
    "path in a list": ("OVIR009", with_rt_info("<info value='[\"/etc/passwd\"]'/>")),
    "path out of the folder": ("OVIR009", with_rt_info('<weights value="../../secret.bin"/>')),
    "path of Windows": ("OVIR009", with_rt_info('<input_model value="C:\\Users\\ann\\model.onnx"/>')),
    "share of Windows": ("OVIR009", with_rt_info('<input_model value="\\\\host\\share"/>')),
    "address": ("OVIR009", with_rt_info("<labels>ftp://example.com/labels.txt</labels>")),
    "address with a password": ("OVIR009", with_rt_info("<labels>https://ann:secret@example.com/</labels>")),
    "address of an attribute": ("OVIR009", changed('shape="3"', 'shape="3" source="https://example.com/x"')),
    "path in a variable": ("OVIR009", with_rt_info('<cache value="${HOME}/cache"/>')),
    "script": ("OVIR009", with_rt_info('<link value="javascript:alert(1)"/>')),
    "data in an address": ("OVIR009", with_rt_info('<link value="data:text/html;base64,PGI+"/>')),
    "two marks": ("OVIR004 OVIR517", changed("</net>", '</net><?ovir-weights size="1" crc32="00000000"?><?ovir-weights size="1" crc32="00000000"?>')),
    "turned name": ("OVIR010", changed('name="sum"', 'name="sum&#x202E;gnp.exe"')),
    "invisible name": ("OVIR010", changed('name="sum"', 'name="su&#x200B;m"')),
    "name of a filler": ("OVIR010", changed('name="sum"', 'name="su&#x3164;m"')),
    "name with a selector": ("OVIR010", changed('name="sum"', 'name="su&#xFE0F;m"')),
    "escape sequence": ("OVIR010", changed('name="sum"', 'name="&#x9B;31msum"')),
    "name of lines": ("OVIR010", changed('name="sum"', 'name="sum&#10;model.xml:1: no errors"')),
    "offset outside": ("OVIR502", changed('offset="0"', 'offset="4611686018427387904"')),
    "offset that overflows": ("OVIR017 OVIR302", changed('offset="0"', 'offset="18446744073709551612"')),
    "size too small": ("OVIR503", changed('size="12"', 'size="1"')),
    "unknown version": ("OVIR106", changed('version="11"', 'version="99"')),
    "no IR": ("OVIR105", "<html/>"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_XML)
def test_hostile_topologies(name: str, tmp_path: Path) -> None:
    codes, xml = HOSTILE_XML[name]
    found = checked(written(tmp_path, xml))
    assert errors(found) == set(codes.split()), found


@pytest.mark.parametrize("name", TRICKS)
def test_tricks(name: str, tmp_path: Path) -> None:
    code, play = TRICKS[name]
    found = checked(play(HONEST).write(tmp_path))
    assert code in errors(found), found


@pytest.mark.parametrize("name", ["a.xml.lzma", "a.xml.Z", "a.XML.GZ", "a.xml.7z", "a.xml.tgz"])
def test_compressed_models_are_not_looked_into(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert [d.code for d in ovir.check(tmp_path, untrusted=True)][:1] == ["OVIR011"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("name", ["a\nmodel.xml: no errors.xml", "a\u202elmx.xml", "a\x1b[2J.xml", "a\u200b.bin"])
@pytest.mark.parametrize("inside", [True, False])
def test_names_of_files_that_mislead(name: str, inside: bool, tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / name).write_text(XML)
    _, found = find_untrusted([str(tmp_path if inside else tmp_path / name)])
    assert errors(found) == {"OVIR010"}


@pytest.mark.parametrize(
    ("sizes", "is_error"), [([8], False), ([16] * 15 + [14], False), ([17], True), ([16] * 15 + [15], True)], ids=str
)
def test_small_constants_of_a_branch_that_never_runs_are_left_over(
    sizes: list[int], is_error: bool, tmp_path: Path
) -> None:
    def of_constants(x: ovir.Layer) -> ovir.Layer:
        for index, count in enumerate(sizes):
            x = ops.add(x, ops.reduce_sum(np.arange(count, dtype=np.float32) + 100 * index + 1, [0], keep_dims=True))
        return ops.relu(x)

    x = ops.parameter([1], "f32")
    branch = choice(ops.constant(np.array(True)), lambda x: x, of_constants, x)
    ovir.save_model(ovir.Model([branch.outputs[0]], [x]), tmp_path / "model.xml")
    found = [d.severity.value for d in checked(tmp_path / "model.xml") if d.code == "OVIR508"]
    assert found == ["error" if is_error else "warning"]


def test_honest_models_pass(tmp_path: Path, guard: Guard) -> None:
    links = '<docs value="https://docs.ultralytics.com"/><source>http://example.com:80/a?b=c#d</source>'
    for write in (written, lambda folder: written(folder, with_rt_info(links)), HONEST.write):
        assert guard.check(str(write(tmp_path))).diagnostics == []


def test_honest_examples_have_the_errors_of_an_ordinary_check_only() -> None:
    wrong = {}
    for path in sorted(EXAMPLES.glob("*.xml")):
        found = errors(checked(path))
        if found - errors(ovir.check(path)) - {"OVIR221"}:
            wrong[path.name] = found
    assert wrong == {}


# --------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("rest", "is_error", "entropy"),
    [
        (b"\0" * 52, False, "0.0"),  # padding to 64 bytes
        (b"\0" * 100, False, "0.0"),  # a warning
        (b"MZ", True, "1.0"),
        (np.random.default_rng(0).bytes(65536), True, "8.0"),
    ],
)
def test_hidden_bytes(rest: bytes, is_error: bool, entropy: str, tmp_path: Path) -> None:
    found = checked(written(tmp_path, blob=BLOB + rest))
    assert errors(found) == ({"OVIR508"} if is_error else set())
    if len(rest) != 52:
        assert f"no constant uses {len(rest):,} of the" in found[0].message
        assert f"their entropy is {entropy} bits per byte" in found[0].message


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (np.array([2, 0, 1], "<i4").tobytes() + b"a", "OVIR506"),
        (np.array([1, 0, 100], "<i4").tobytes() + b"a", "OVIR506"),
        (np.array([1, 0, -5], "<i4").tobytes() + b"a", "OVIR506"),
        (np.array([1, 0, 1], "<i4").tobytes() + b"\xff", None),
        (np.array([1, 0, 1], "<i4").tobytes() + b"a" + b"hidden", "OVIR504"),
        (np.array([1, 6, 7], "<i4").tobytes() + b"hiddena", "OVIR504"),
        (np.array([1, 0, 1], "<i4").tobytes() + b"a", None),
    ],
)
def test_strings(data: bytes, code: str | None, tmp_path: Path) -> None:
    net = Net()
    net.result(net.const(np.array(["a"], object), name="text"))
    xml = re.sub(r'size="\d+"', f'size="{len(data)}"', net.xml())
    found = errors(checked(written(tmp_path, xml, data)))
    assert (code is None and found <= {"OVIR506"}) or code in found


# --------------------------------------------------------------------------- files that are none


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def own(path: Path) -> None:
    path.symlink_to(path.name)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        folder = os.open(path.parent, os.O_RDONLY)  # because the names of sockets are short
        opened.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [pipe, link, endless, own, listening, folder], ids=lambda make: make.__name__)
@pytest.mark.parametrize("suffix", [".xml", ".bin"])
def test_special_files(make: Callable[[Path], None], suffix: str, tmp_path: Path, guard: Guard) -> None:
    path = written(tmp_path)
    path.with_suffix(suffix).unlink()
    make(path.with_suffix(suffix))
    code = "OVIR002" if make in (link, endless, own) else "OVIR003"
    assert code in errors(checked(path))
    files, found = find_untrusted([str(tmp_path)])
    assert code in errors(found + [d for file, _ in files for d in guard.check(file).diagnostics])


def test_links_of_folders_are_not_followed(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "root").symlink_to("/")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "model.xml.gz").write_bytes(b"")
    found = ovir.check(tmp_path, untrusted=True)
    assert sorted(d.code for d in found) == ["OVIR002", "OVIR002", "OVIR011"]


def test_a_missing_file_and_a_folder_without_models(tmp_path: Path) -> None:
    assert [d.code for d in ovir.check(tmp_path / "no.xml", untrusted=True)] == ["OVIR101"]
    assert [d.code for d in ovir.check(tmp_path, untrusted=True)] == ["OVIR101"]


# --------------------------------------------------------------------------- the budget


def test_time_over_the_budget_is_an_error(tmp_path: Path) -> None:
    net = Net()
    value = net.parameter("data", "3")
    for _ in range(5000):
        value = net.op("ReLU", value)
    net.result(value)
    path = written(tmp_path, net.xml(), bytes(net.blob))
    (found,) = ovir.check(path, untrusted=Budget(seconds=0.05))
    assert (found.code, found.file) == ("OVIR001", str(path))
    assert "more than" in found.message


def test_the_next_file_is_checked_after_one_over_its_memory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    large = written(tmp_path / "a", with_rt_info(f"<a>{'x' * 1000}</a>" * 40_000))
    honest = written(tmp_path / "b")
    with Guard(CheckOptions(), Budget(memory=1 << 26)) as opened:
        assert "OVIR001" in errors(opened.check(str(large)).diagnostics)
        assert opened.check(str(honest)).diagnostics == []


def test_a_process_that_dies_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path)
    with Guard(CheckOptions(extensions=(str(tmp_path / "evil.py"),)), Budget()) as opened:
        (tmp_path / "evil.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
        (found,) = opened.check(str(path)).diagnostics
    assert found.code == "OVIR001"


def test_a_tag_that_would_take_a_reader_minutes_is_not_read(tmp_path: Path, guard: Guard) -> None:
    verdict = guard.check(str(written(tmp_path, with_rt_info(f'<a b="{"x" * (18 << 20)}"/>'))))
    assert {d.code: d.message for d in verdict.diagnostics} == {
        "OVIR001": "because of OVIR006, the file is not read",
        "OVIR006": "a tag, a comment or an instruction has more than 16,777,216 bytes",
    }
    assert verdict.seconds < 10


MANY_MORE = " ".join(f"a{i}=''" for i in range(30_000))
UNREAD: dict[str, tuple[str, Callable[[Path], object]]] = {
    "many tags": ("OVIR001", lambda path: path.write_text(with_rt_info("".join(f"<a{i}/>" for i in range(1100))), "utf-8")),
    "many attributes": ("OVIR001", lambda path: path.write_text(with_rt_info(f"<a {MANY_MORE}/>"), "utf-8")),
    "truncated": ("OVIR103", lambda path: path.write_text("<net", "utf-8")),
    "empty": ("OVIR101", lambda path: path.write_bytes(b"")),
    "other XML": ("OVIR105", lambda path: path.write_text("<html/>", "utf-8")),
    "junk behind it": ("OVIR102", lambda path: path.write_text(f"{XML}junk", "utf-8")),
    "a character that expat refuses": ("OVIR102", lambda path: path.write_text(with_rt_info("<\U00010000/>"), "utf-8")),
    "an entity": ("OVIR107", lambda path: path.write_text(after_declaration('<!DOCTYPE net [<!ENTITY x "y">]>'), "utf-8")),
    "missing": ("OVIR101", lambda path: path.unlink()),
    "sparse": ("OVIR001", lambda path: os.truncate(path, 1 << 40)),
    "sparse weights": ("OVIR001", lambda path: os.truncate(path.with_suffix(".bin"), 1 << 40)),
    "linked weights": ("OVIR002", lambda path: (path.with_suffix(".bin").unlink(), link(path.with_suffix(".bin")))),
    "weights of a pipe": ("OVIR003", lambda path: (path.with_suffix(".bin").unlink(), pipe(path.with_suffix(".bin")))),
}  # fmt: skip
"""Files of which nothing is read, or not the weights, each with the code that says so."""


SKIPPED = tuple(code for code in CODES if code < "OVIR8")


@pytest.mark.parametrize("name", UNREAD)
def test_nobody_can_ignore_that_a_file_is_not_read(name: str, tmp_path: Path) -> None:
    code, spoil = UNREAD[name]
    path = written(tmp_path)
    spoil(path)
    found = checked(path)
    assert errors(found) >= {code}
    assert len({d.code for d in found}) == len(found)
    assert [d.code for d in checked(path, SKIPPED)] == [code]


@pytest.mark.parametrize("name", ["truncated", "sparse weights"])
def test_nor_can_who_calls_check(name: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    UNREAD[name][1](path)
    assert errors(ovir.check(path, untrusted=True, skip=SKIPPED))


@pytest.mark.parametrize(
    ("declarations", "code"), [("", "OVIR004"), ("[<!ATTLIST layer name CDATA 'x'>]", "OVIR102"), ("[]", "OVIR102")]
)
def test_what_follows_a_doctype_is_looked_at(declarations: str, code: str, tmp_path: Path) -> None:
    path = written(tmp_path, after_declaration(f"<!DOCTYPE net {declarations}><?instruction?>"))
    assert errors(checked(path)) >= {"OVIR108", code}
    assert errors(checked(path, ("OVIR108",))) == {code}


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600", "&#10;"])
def test_answers_do_not_become_too_long(letter: str, tmp_path: Path) -> None:
    layer = '<layer id="{}" name="{}" type="Unheard" version="opset1"/>'
    layers = "".join(layer.format(i + 10, letter * 2500) for i in range(1200))
    found = checked(written(tmp_path, changed("</layers>", f"{layers}</layers>")))
    assert "OVIR201" in errors(found)
    assert any("this list ends after" in d.message for d in found)
    assert len(json.dumps([d.to_dict() for d in found])) < LONGEST_ANSWER


def test_content_in_memory_is_refused() -> None:
    with pytest.raises(ovir.InputError, match="must be a path"):
        ovir.check(XML.encode(), untrusted=True)


# --------------------------------------------------------------------------- random files

FILES = 60


def test_mutated_files_get_verdicts() -> None:
    seeds = mutants.seeds([untrusted.EXAMPLES])
    result = untrusted.fuzz(partial(untrusted.mutate, seeds), range(FILES))
    assert result.faults == []
    assert result.errors > FILES // 2


def test_two_tricks_together_are_refused() -> None:
    result = untrusted.fuzz(untrusted.composed, range(FILES // 3))
    assert result.faults == []
    assert result.errors == FILES // 3
