"""The fast forms of operations, in modules of the names that the operations' modules have in ``ovir.ops``."""
