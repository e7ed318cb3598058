"""The adapter that Model Explorer loads for ``--extensions=ovir.view``."""

from __future__ import annotations

from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata
from model_explorer.graph_builder import Graph

from ovir.checks.recovering import read_recovering
from ovir.view.graphs import FIRST_VALUES, graphs_of


class OpenVinoAdapter(Adapter):  # type: ignore[misc]  # Model Explorer ships no types
    """Reads OpenVINO IR. A model with faults is drawn with them, as far as it can be understood."""

    metadata: ClassVar[Any] = AdapterMetadata(
        id="ovir",
        name="OpenVINO IR (ovir)",
        description="Reads .xml and .bin, infers shapes, and shows what is wrong.",
        source_repo="",
        fileExts=["xml"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the graphs of a file; ``const_element_count_limit`` of the settings is the number of values that are
        shown of a constant.

        Raise ReadError if no model can be read.
        """
        recovered = read_recovering(model_path)
        diagnostics = (*recovered.errors, *recovered.model.diagnostics)
        values = settings.get("const_element_count_limit", FIRST_VALUES)
        graphs = graphs_of(recovered.model, diagnostics, recovered.declared, values=values)
        return {"graphs": [Graph(**graph.to_dict()) for graph in graphs]}
