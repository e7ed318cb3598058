"""Work on many inputs, models or files, which any executor of ``concurrent.futures`` runs."""
