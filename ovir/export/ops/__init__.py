"""The exporters of the operations: one module for each module of ``ovir.ops``, under the same name."""
