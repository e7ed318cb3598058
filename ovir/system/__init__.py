"""What ovir asks of the system: files, processes, interrupts, progress."""
