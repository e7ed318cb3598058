"""A model in memory: layers, ports and their connections."""
