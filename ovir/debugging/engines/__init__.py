"""Engines other than ovir: OpenVINO's devices and onnxruntime, each in a process of its own."""
