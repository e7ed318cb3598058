"""Random models, and the search for models on which a device differs from ovir."""
