"""Writes a Model as a pair of .xml and .bin, or as Python code."""
