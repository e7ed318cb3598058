"""Files beside the model: tensors, SARIF."""
