"""The basic types of ovir: element types, dimensions, shapes, known values, arrays."""
