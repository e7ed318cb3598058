"""Benchmarks, each of which measures both sides in one process: ``python -m benchmarks.gather``."""
