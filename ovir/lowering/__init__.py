"""Layers expressed by older operation versions: the table of decompositions, and the operations of releases."""
