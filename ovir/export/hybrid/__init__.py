"""Models that run in onnxruntime, with NumPy for what is not exported: ``partition`` makes each part of a model that
onnxruntime can run one layer, and ``hybrid_model`` compiles the result as any other model."""
