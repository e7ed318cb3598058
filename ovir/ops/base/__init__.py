"""Base classes of operations, and the registry; the operations themselves are in the modules of ``ovir.ops``."""
