"""What operations are built on; no operation stands here."""
