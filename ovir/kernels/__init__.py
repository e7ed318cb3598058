"""Kernels that fill a file of their own: functions on arrays, which know nothing of operations."""
