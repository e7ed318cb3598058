"""The edits of a model after which it is inferred; ``Model`` has a method for each of them."""
