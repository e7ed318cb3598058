"""What everything else is made of: element types, shapes, known values, arrays."""
