"""The output of commands, and its look in a terminal."""
