"""How each operation is exported: one module for each module of ``ovir.ops``, under the same name."""
