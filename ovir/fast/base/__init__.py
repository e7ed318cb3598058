"""What several fast forms use: the binder, arrays, threads and blocks."""
