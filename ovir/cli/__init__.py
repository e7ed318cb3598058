"""The command ``ovir``: one module per subcommand, each with its help, ``add_to`` (its arguments) and ``run``."""
