"""`ovir infer`, `ovir show`, `ovir ops`."""

import json
from typing import Any

from ovir.cli.operations import entries, tokenizer_entries


def test_ops(cli: Any) -> None:
    listed = json.loads(cli("ops", "--json").out)
    assert [(e["type"], e["version"]) for e in listed] == [
        (e.name, e.version) for e in (*entries(), *tokenizer_entries())
    ]
    gather = {e["version"]: e for e in listed if e["type"] == "Gather"}
    assert list(gather) == ["opset1", "opset7", "opset8"]
    assert gather["opset8"] == {
        "type": "Gather", "version": "opset8", "opsets": "8-16", "inference": True, "kernel": True
    }  # fmt: skip
    table = cli("ops").out
    assert f"{len(entries())} operation versions: " in table
    assert f"{len(tokenizer_entries())} operations of openvino_tokenizers" in table
