"""Finds the first layer of a model at which another engine or model differs."""
