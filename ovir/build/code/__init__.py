"""Python code that builds a model that exists."""
