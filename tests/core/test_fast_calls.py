"""Names that NumPy does not publish are imported in one module, which has public functions to take their place."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ovir.core import fast_calls

ROOT = Path(__file__).parent.parent.parent
FAST_CALLS = ROOT / "ovir" / "core" / "fast_calls.py"
PRIVATE = re.compile(r"(numpy|np)\.(.*\.)?(_\w+|core)(\.|$)")


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield what a file imports, and the attributes of modules that it uses, with their dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def private_names(code: str) -> set[str]:
    """Return the names of NumPy's own modules and functions that code uses."""
    return {name for name in _names(ast.parse(code)) if PRIVATE.match(name) and not name.endswith("__")}


@pytest.mark.slow
def test_one_module_uses_private_names() -> None:
    files = [path for folder in ("ovir", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    users = {path for path in files if private_names(path.read_text(encoding="utf-8"))}
    assert users == {FAST_CALLS}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8])
def test_public_functions_compute_the_same(dtype: type[np.generic]) -> None:
    x = np.arange(24).reshape(4, 6).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        x[0, :3] = np.nan, np.inf, -np.inf
    low, high = np.array(3, dtype), np.array(17, dtype)
    fast, public = np.empty_like(x), np.empty_like(x)
    fast_calls.clip(x, low, high, fast)
    fast_calls._clip(x, low, high, public)
    np.testing.assert_array_equal(fast, public)

    weights = np.arange(6).astype(dtype)
    fast, public = np.empty(4, dtype), np.empty(4, dtype)
    fast_calls.einsum("ij,j->i", x, weights, out=fast)
    fast_calls._einsum("ij,j->i", x, weights, out=public)
    np.testing.assert_array_equal(fast, public)


WITHOUT_PRIVATE_NAMES = """
import sys
import numpy as np
sys.modules["numpy._core.umath"] = sys.modules["numpy._core.multiarray"] = None  # an import of them fails
from ovir.core import fast_calls
assert (fast_calls.clip, fast_calls.einsum) == (fast_calls._clip, fast_calls._einsum)
import ovir
model = ovir.compile_model("examples/xml/digits.xml")
feeds = np.load("examples/xml/digits_input.npz")
np.save(sys.argv[1], model({name: feeds[name] for name in feeds})[0])
"""


def test_models_run_without_private_names(tmp_path: Path) -> None:
    import ovir

    saved = tmp_path / "found.npy"
    subprocess.run([sys.executable, "-c", WITHOUT_PRIVATE_NAMES, str(saved)], cwd=ROOT, check=True, timeout=120)
    feeds = np.load(ROOT / "examples" / "xml" / "digits_input.npz")
    model = ovir.compile_model(ROOT / "examples" / "xml" / "digits.xml")
    expected = model({name: feeds[name] for name in feeds})[0]
    np.testing.assert_allclose(np.load(saved), expected, rtol=1e-6)
