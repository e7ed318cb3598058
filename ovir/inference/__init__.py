"""Inference of the element type and shape of every port."""
