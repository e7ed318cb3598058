"""`ovir infer` and `ovir show` of models that are at fault; transcripts/show.md shows the rest."""

from pathlib import Path
from typing import Any

import pytest

import ovir

BAD = Path(__file__).parent.parent / "data" / "bad"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(BAD.glob("*.xml")), ids=lambda path: path.stem)
def test_each_bad_file_is_shown_or_refused(cli: Any, path: Path) -> None:
    try:
        ovir.read_model(path)
    except ovir.ReadError:
        wanted = 2
    except ovir.OvirError as error:
        wanted = 1 if any(d.code != "OVIR501" for d in error.diagnostics) else 0
    else:
        wanted = 0
    for command in ("infer", "show")[: 1 if wanted == 2 else 2]:  # both refuse a file in the same way
        result = cli(command, path)
        assert result.status == wanted
        assert bool(result.out) == (wanted != 2)
        assert "OVIR999" not in result.err
