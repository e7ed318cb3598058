"""The command ``ovir``: one module per subcommand, each with ``add_to`` (its arguments) and ``run``."""
