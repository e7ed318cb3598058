def positional(array, axes):
    return None
