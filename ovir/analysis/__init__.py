"""Tools built on the model and the runtime, which do not import them; the command line prints their results."""
