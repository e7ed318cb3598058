"""Export to ONNX: ``exporter`` walks a model, ``registry`` finds the function for each operation in ``ops/``, and these
functions add nodes to a ``Graph``. It needs the packages onnx and onnx_ir, which the extra ``ovir[onnx]`` installs."""
