"""Files other than models: tensors and SARIF."""
