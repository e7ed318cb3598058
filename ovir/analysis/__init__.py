"""Tools built on the model and the runtime, which know nothing of them; the command line prints what they find."""
