"""Export to ONNX, and the engine onnxruntime in ``hybrid/``, which runs the parts of a model that can be exported.

``model_exporter`` walks a model, ``exporters`` finds the function for each operation in ``ops/``, and these functions
add nodes to the ``Graph`` of ``onnx_graph``. The export needs the packages onnx and onnx_ir, which the extra
``ovir[onnx]`` installs.
"""
