"""The command ``ovir``: one file per subcommand, each with ``add_to`` (its arguments) and ``run``."""
