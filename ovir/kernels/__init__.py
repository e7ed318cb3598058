"""NumPy kernels shared by operations: functions on arrays that know nothing of operations."""
