"""The file format: reading the pair of .xml and .bin into a Model."""
