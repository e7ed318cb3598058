"""Pages of the documentation that the parser and the operations make."""
