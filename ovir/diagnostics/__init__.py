"""Diagnostics: their codes, their texts, the errors that carry them."""
