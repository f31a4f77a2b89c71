"""Inference compared with the runtimes ONNX Runtime and OpenVINO."""
