"""Models that run in onnxruntime, with NumPy for what ONNX cannot express: ``partition`` finds the parts,
``hybrid_model`` replaces each by one layer, and ``compiled`` compiles the result as any other model."""
