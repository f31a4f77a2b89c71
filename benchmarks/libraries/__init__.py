"""Programs without Python: native libraries beside LibTorch, AOTInductor and ONNX Runtime."""
