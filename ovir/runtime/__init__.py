"""Running of models: the plan, the executor, infer requests."""
