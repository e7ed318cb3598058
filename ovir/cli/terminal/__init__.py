"""What commands print, and how a terminal shows it."""
