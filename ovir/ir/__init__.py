"""The file format: reads a pair of .xml and .bin into a Model."""
