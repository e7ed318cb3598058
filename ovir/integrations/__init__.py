"""Adapters for programs of others."""
