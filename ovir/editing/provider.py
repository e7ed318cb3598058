"""Registers the edits as methods of models."""

from __future__ import annotations

from ovir.editing import cleaning, constants, folding, layers, names, outputs, parts, transaction
from ovir.graph.checked_edits import edits


class _Edits:
    """The functions behind the methods of ``CheckedEdits``."""

    editing = staticmethod(transaction.editing)
    extract = staticmethod(parts.extract)
    rename = staticmethod(names.rename)
    add_outputs = staticmethod(outputs.add_outputs)
    set_constant = staticmethod(constants.set_constant)
    replace = staticmethod(layers.replace)
    insert_after = staticmethod(layers.insert_after)
    insert_before = staticmethod(layers.insert_before)
    remove = staticmethod(layers.remove)
    fold_constants = staticmethod(folding.fold_constants)
    decompress = staticmethod(folding.decompress)
    prune = staticmethod(cleaning.prune)
    strip_rt_info = staticmethod(cleaning.strip_rt_info)


edits.provide(_Edits())
