"""Files that ``python -m ovir.generated_files`` writes are up to date."""

import pytest

pytest.importorskip("onnx", reason="a table shows what the export writes, which needs onnx")

from ovir.generated_files import COMMAND, ROOT, expected_files

pytestmark = pytest.mark.documents


def test_the_files_are_up_to_date() -> None:
    expected = dict(expected_files())
    stale = [name for name, text in expected.items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert len(expected) > 20
    assert not stale, f"run `{COMMAND}`"
