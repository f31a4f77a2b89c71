"""Inference beside the runtimes that people deploy with: ONNX Runtime and OpenVINO."""
