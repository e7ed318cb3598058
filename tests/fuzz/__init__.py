"""Fuzzers: programs that make models at random and look for faults of ovir."""
