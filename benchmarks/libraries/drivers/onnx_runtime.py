"""ONNX Runtime in a process of Python: its wheel has no header for C. The artifact is the program in ONNX."""

import sys

import onnxruntime
from report import read_arguments, run

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
given = {each.name: value for each, value in zip(session.get_inputs(), read_arguments(sys.argv[2]), strict=True)}
run(lambda: session.run(None, given), list, sys.argv[1:])
