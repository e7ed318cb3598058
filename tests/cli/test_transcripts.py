"""Transcripts say what commands print: each section of ``transcripts/*.md`` runs in a folder of its own.

``OVIR_TEST_RENEW=1`` in the environment writes what has changed into the transcripts instead.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.command_files import BAD, write_files
from support.transcripts import ANY, blocks_of, commands_of, difference, is_same_text, renewed, run_line

import ovir
from ovir import opset13 as ops
from ovir.cli.options import opening
from ovir.ops.base import registry

FOLDER = Path(__file__).parent / "transcripts"
COLUMNS = 120
RENEW = "OVIR_TEST_RENEW=1 writes what is printed now into the transcript"
SLOW = {"compare", "eval", "fuzz", "precision"}
SECTIONS = [
    pytest.param(path, title, id=f"{path.stem}: {title}", marks=[pytest.mark.slow] * (path.stem in SLOW))
    for path in sorted(FOLDER.glob("*.md"))
    for title in re.findall(r"^## (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transcripts")
    write_files(folder)
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a copy of the files; operations that a section registers are forgotten after it."""
    shutil.copytree(files, tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "bad").symlink_to(BAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(opening, "_loaded", set())
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="transcripts use terminals, and sed as GNU has it")
@pytest.mark.usefixtures("shared_workers")
@pytest.mark.parametrize(("path", "title"), SECTIONS)
def test_a_transcript(path: Path, title: str, folder: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    section = new = re.split(rf"^## {re.escape(title)}$", text, flags=re.MULTILINE)[1].partition("\n## ")[0]
    if "openvino:" in section:
        request.getfixturevalue("device")  # which stands in for OpenVINO
    for block in blocks_of(section):
        if block.language == "python":
            exec(block.code, {"np": np, "ovir": ovir, "ops": ops, "Net": Net, "folder": folder})
            continue
        code = ""
        for line, expected in commands_of(block.code):
            status, found = run_line(line, COLUMNS)
            command = line.partition("  # status ")[0] + (f"  # status {status}" if status else "")
            found = found.replace(str(folder), ANY)
            if "OVIR_TEST_RENEW" in os.environ:
                code += f"$ {command}\n{expected if is_same_text(found, expected) else renewed(found, expected)}"
            else:
                assert command == line, found
                assert is_same_text(found, expected), f"$ {line}\n{difference(found, expected)}\n{RENEW}"
        new = new.replace(block.code, code or block.code)
    if new != section:
        path.write_text(text.replace(section, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("found", "expected", "result"),
    [
        ("a\n1\n2\nb\nd\n", "a\n...\nb\nc\n", "a\n...\nb\nd\n"),
        ("1\n2\nb\nd\n", "...\nb\nc\n", "...\nb\nd\n"),
        ("new\n1\nb\n", "a\n...\nb\n", "new\n1\nb\n"),  # the first line has changed, and is not hidden
        ("a\n1\nnew\n", "a\n...\nb\n", "a\n1\nnew\n"),
        ("new\n1 s\n", "a\n... s\n", "new\n... s\n"),
    ],
)
def test_gaps_whose_neighbors_are_there_are_left(found: str, expected: str, result: str) -> None:
    assert renewed(found, expected) == result


def test_integers_are_compared_exactly_and_other_numbers_roughly() -> None:
    assert is_same_text("0.5001  1000", "0.5  1000")
    assert not is_same_text("0.5  1001", "0.5  1000")
    assert not is_same_text("0.6  1000", "0.5  1000")
