"""Documents say what happens: their links lead somewhere, their code runs, and their commands print what they show."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from support.terminals import needs_terminal
from support.transcripts import blocks_of, commands_of, difference, is_same_text, run_line

from ovir.cli.main import main, parser
from ovir.core.short_names import columns_of
from ovir.ops.base import registry

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), ROOT / "examples" / "README.md"]
SET_UP = {"README.md", "CONTRIBUTING.md"}
"""Their bash blocks install things: .ci/run runs those of README.md."""

NEEDED = {
    "answers.md": ("onnx", "onnx_ir"),
    "onnx.md": ("onnx", "onnx_ir", "onnxruntime"),
    "adding-an-export.md": ("onnx", "onnx_ir"),
    "reports.md": ("jinja2", "plotly", "itables"),
}
"""The packages that the code of a document needs, of the extra `dev`."""


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def require_packages(path: Path) -> None:
    """Skip a test if a package is missing that the code of a document needs."""
    for package in NEEDED.get(path.name, ()):
        pytest.importorskip(package, reason=f"{path.name} needs {package}")


def blocks(language: str) -> list[object]:
    """Return a parameter for each block of code in the language: the document and the code."""
    return [
        pytest.param(path, block.code, id=f"{path.relative_to(ROOT).as_posix()}:{block.line}")
        for path in DOCUMENTS
        for block in blocks_of(text_of(path))
        if block.language == language
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with what the documents mention: the examples, and models of a user's own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("models/detector", "exported/detector"):
        for suffix in (".xml", ".bin"):
            target = (tmp_path / name).with_suffix(suffix)
            target.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / "examples" / "xml" / f"digits{suffix}", target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --------------------------------------------------------------------------- links and paths


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors that code hosts give to the headings of a document."""
    found: dict[str, int] = {}
    result = set()
    for heading in re.findall(r"^#+ +(.*?) *$", without_code(text_of(path)), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        result.add(f"{anchor}-{count}" if count else anchor)
    return frozenset(result)


def links(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the anchor of each link that stays in the project."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(path))):
        if not re.match(r"\w+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


def test_links_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        for file, anchor in links(path):
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{path.name}: {file}#{anchor}")
    assert not broken


def test_every_document_is_linked_from_the_readme_the_index_or_the_reference() -> None:
    lists = (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "reference" / "python.md")
    linked = {(page.parent / file).resolve() for page in lists for file, _ in links(page)}
    assert [path.name for path in DOCUMENTS if path not in linked and path.name != "README.md"] == []


def test_named_files_exist() -> None:
    # A name with a part to fill in, as <family> or nnn, is a pattern.
    folders = "ovir|tests|docs|examples|benchmarks"
    missing = []
    for path in DOCUMENTS:
        for name in re.findall(rf"(?<![\w/.])(?!\S*nnn)((?:{folders})/[\w/.-]*[\w/])(?![\w<]|\*)", text_of(path)):
            if not (ROOT / name).exists():
                missing.append(f"{path.name}: {name}")
        for name in re.findall(r"python -m ((?:benchmarks|ovir)[\w.]*)", text_of(path)):
            if not (ROOT / name.replace(".", "/")).with_suffix(".py").exists() and not (ROOT / name).is_dir():
                missing.append(f"{path.name}: {name}")
    assert not missing


# --------------------------------------------------------------------------- code


COLUMNS = 80


def assert_fits(text: str) -> None:
    """Check that lines fit into the terminal, but for code and diagnostics, which are for programs as well."""
    for line in text.splitlines():
        if not re.search(r"(error|warning|info)\[OVIR|^  hint: |^ops\.| = ops\.", line):
            assert columns_of(line) <= COLUMNS, line


def write_modules(path: Path, folder: Path) -> None:
    """Write the blocks of a document that begin with the name of a file, such as ``# swirl.py``."""
    for name, code in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text_of(path), re.MULTILINE | re.DOTALL):
        (folder / name).write_text(code, encoding="utf-8")


@pytest.fixture
def _own_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the operations that a test registers."""
    monkeypatch.setattr(registry, "_users", dict(registry._users))


@needs_terminal
@pytest.mark.usefixtures("_own_operations")
@pytest.mark.parametrize(("path", "code"), blocks("console"))
def test_commands_print_what_is_shown(path: Path, code: str, folder: Path) -> None:
    require_packages(path)
    write_modules(path, folder)
    for line, expected in commands_of(code):
        shown = run_line(line, COLUMNS).text
        assert is_same_text(shown, expected), f"$ {line}\n{difference(shown, expected)}"
        assert_fits(shown)


@pytest.mark.usefixtures("_own_operations")
@pytest.mark.parametrize(("path", "code"), blocks("python"))
def test_python_runs(path: Path, code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages(path)
    if "@operator(" in code:  # one that ovir has, shown as an example
        monkeypatch.setattr(registry, "_operations", {})
    if "import openvino" in code:  # as in tests/oracle, it runs in a process of its own
        pytest.importorskip("openvino", reason="OpenVINO is not installed")
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        return
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(code, path.name, "exec"), {})
    lines = iter(output.getvalue().splitlines())
    for expected in re.findall(r"^print\(.*?\)  # ([\[(].*)$", code, re.MULTILINE):
        assert expected in lines, f"{expected} is not printed, or not in this order"


@pytest.mark.parametrize(("path", "code"), blocks("bash"))
def test_commands_of_the_shell_pass(path: Path, code: str, folder: Path) -> None:
    if path.name in SET_UP:
        pytest.skip("it installs packages")
    require_packages(path)
    script = f'ovir() {{ {shlex.quote(sys.executable)} -m ovir "$@"; }}\n{code}'
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


LANGUAGES = {
    "run": {"python", "console", "bash"},
    "parsed": {"sh", "xml", "yaml", "toml"},
    "shown": {"text"},
}
"""The languages of blocks: what the tests run, what only has to be valid, and what programs print or is abridged."""


def test_blocks_have_a_language() -> None:
    for path in DOCUMENTS:
        fences = re.findall(r"^ *```(.*)$", text_of(path), re.MULTILINE)
        assert set(fences[::2]) <= set().union(*LANGUAGES.values()), path
        assert set(fences[1::2]) <= {""}, path


COMMANDS_TO_ADAPT = [
    line
    for path in DOCUMENTS
    for block in re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```$", text_of(path), re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith("ovir ") and "..." not in line
]
"""Commands with names of files that a reader replaces."""


def test_commands_to_adapt_are_valid() -> None:
    options = parser()
    for line in COMMANDS_TO_ADAPT:
        command = re.split(r" {2,}| [|>] ", line)[0]  # a comment follows some of them
        options.parse_args(shlex.split(command)[1:])


EXAMPLES = [
    command
    for path in DOCUMENTS
    for command in re.findall(r"`(ovir (?:run|infer|show) examples/[^`]*)`", text_of(path))
]


@pytest.mark.parametrize("command", dict.fromkeys(EXAMPLES))
def test_commands_in_sentences_pass(command: str, folder: Path) -> None:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as errors:
        assert main(shlex.split(command)[1:]) == 0, errors.getvalue()
