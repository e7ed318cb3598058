"""The subcommands of ``ovir``, one in each file."""
