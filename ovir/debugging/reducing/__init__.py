"""Reduces a model to the smallest one that still makes a program fail."""
