"""``python -m ovir`` is the command ``ovir``."""

from ovir.cli.main import command

command()
