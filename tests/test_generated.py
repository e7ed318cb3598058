"""Files that ``python -m ovir.generated_files`` writes are up to date."""

import pytest

pytest.importorskip("onnx", reason="a table shows what the export writes, which needs onnx")

from ovir.generated_files import COMMAND, FILES, generated

pytestmark = pytest.mark.documents


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_up_to_date(name: str) -> None:
    present, expected = generated(name)
    assert present == expected, f"{name} is out of date: run `{COMMAND}`"
