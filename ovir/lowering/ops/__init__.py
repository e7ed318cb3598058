"""The decompositions of operation versions, in modules with the names that the operations have in ``ovir/ops/``."""
