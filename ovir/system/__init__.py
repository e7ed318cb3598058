"""Services of the system: files, processes, interrupts, progress."""
