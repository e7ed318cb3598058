"""Models built in Python: the operations of each opset as functions, and Python code for a model that exists."""
