"""Executors of a network: eager PyTorch, ``torch.jit``, ONNX Runtime, OpenVINO and rekindle. Each computes in float32,
on as many threads as PyTorch has when the network is prepared."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import logging
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.peers import Unavailable

Call = Callable[[], list[Any]]
"""Runs the network on its arguments, and returns what it computes: tensors or arrays of NumPy."""

PACKAGES: Final = {
    "onnx": "1.23.2",
    "onnxruntime": "1.32.0",
    "onnxscript": "0.7.2",
    "openvino": "2026.4.1",
    "torchvision": "0.28.0",
}
"""What the extra ``runtimes`` installs."""


class Subject:
    """A network and its arguments. Its ONNX form is created once."""

    def __init__(self, module: nn.Module, arguments: tuple[Tensor, ...], is_traced: bool = False) -> None:
        self.module = module
        self.arguments = arguments
        self.is_traced = is_traced
        self._onnx: bytes | None = None

    def onnx(self) -> bytes:
        """Return the bytes of the ONNX model that ``torch.onnx.export`` writes for the network."""
        if self._onnx is None:
            logging.disable(logging.WARNING)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program: Any = torch.onnx.export(self.module, self.arguments, dynamo=True, verbose=False)
                file = io.BytesIO()
                program.save(file)
            logging.disable(logging.NOTSET)
            self._onnx = file.getvalue()
        return self._onnx


def eager(subject: Subject) -> Call:
    """Return a function that calls the network in eager and returns the tensors of the result."""
    return lambda: tree_leaves(subject.module(*subject.arguments))


def torch_jit(subject: Subject) -> Call:
    """Script or trace the network with ``torch.jit``, freeze and optimize it for inference; return a function that
    calls it and returns the tensors of the result."""
    module, arguments = subject.module, subject.arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.jit.trace(module, arguments) if subject.is_traced else torch.jit.script(module)
        made = torch.jit.optimize_for_inference(compiled)
    return lambda: tree_leaves(made(*subject.arguments))


def ours(subject: Subject) -> Call:
    """Script or trace the network with rekindle, freeze and optimize it for inference; return a function that calls it
    and returns the tensors of the result."""
    module, arguments = subject.module, subject.arguments
    compiled: Any = rekindle.trace(module, arguments) if subject.is_traced else rekindle.script(module)
    made = rekindle.optimize_for_inference(compiled)
    return lambda: tree_leaves(made(*subject.arguments))


def onnxruntime(subject: Subject) -> Call:
    """Load the network into ONNX Runtime on the CPU, with all optimizations; return a function that runs it and returns
    the arrays of the result. Raise Unavailable if the package is missing."""
    runtime = _package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    # Its threads wait actively after a run, which would take a core from the peer that is measured next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = runtime.InferenceSession(subject.onnx(), options, providers=["CPUExecutionProvider"])
    given = [argument.numpy() for argument in subject.arguments]
    feeds = {each.name: value for each, value in zip(session.get_inputs(), given, strict=True)}
    return lambda: session.run(None, feeds)  # type: ignore[no-any-return]


def openvino(subject: Subject) -> Call:
    """Load the network into OpenVINO on the CPU; return a function that runs it and returns the arrays of the result.
    It computes in float32, since the default is bfloat16 on processors that have it. Raise Unavailable if the package
    is missing."""
    runtime = _package("openvino")
    core = runtime.Core()
    settings = {
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(subject.onnx(), b""), "CPU", settings)
    request = compiled.create_infer_request()
    given = {number: argument.numpy() for number, argument in enumerate(subject.arguments)}
    return lambda: list(request.infer(given, share_inputs=True, share_outputs=True).values())


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"{name} is not installed: pip install 'rekindle[runtimes]'") from error


PEERS: Final[dict[str, Callable[[Subject], Call]]] = {
    "eager": eager,
    "torch.jit": torch_jit,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "rekindle": ours,
}
