"""Runs models: the plan, the executor, infer requests."""
