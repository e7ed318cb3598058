"""The base of several fast forms: the binder, arrays, threads and blocks."""
