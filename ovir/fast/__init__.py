"""Fast forms of operations, one module for a family with the name that it has in ``ovir.ops``."""
