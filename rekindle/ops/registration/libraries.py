"""Operators and classes of libraries that are not installed: the errors of calls to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.errors import MissingLibraryError
from rekindle.ir.attributes import KEYWORDS
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.types import LIBRARY_CLASSES
from rekindle.ops.tensor.torchbind_objects import python_class_of

_PACKAGES: Final[dict[str, str]] = {
    **dict.fromkeys(("torchvision", "image", "video_reader"), "torchvision"),
    **dict.fromkeys(("torchaudio", "sox_io", "rnnt", "forced_align"), "torchaudio"),
    "torchtext": "torchtext",
    **dict.fromkeys(("torch_scatter", "torch_sparse", "torch_cluster", "torch_spline_conv"), ""),
    "pyg": "pyg-lib",
    "fbgemm": "fbgemm-gpu",
    "torchao": "torchao",
    "torchrec": "torchrec",
    "metatensor": "metatensor-torch",
    "metatomic": "metatomic-torch",
    "openequivariance": "openequivariance",
    "cuequivariance": "cuequivariance-ops-torch",
    "detectron2": "detectron2",
    "nvfuser": "nvfuser",
    "tensorrt": "torch-tensorrt",
    "ipex": "intel-extension-for-pytorch",
    "torch_ipex": "intel-extension-for-pytorch",
}
"""Which package registers the operators and classes of a namespace; empty for one of the namespace's own name."""


def package_of(namespace: str) -> str | None:
    """Return the package that registers the operators and classes of a namespace; None if it is unknown."""
    package = _PACKAGES.get(namespace)
    return namespace.replace("_", "-") if package == "" else package


def missing_library(what: str, namespace: str) -> MissingLibraryError:
    """Return the error for ``what`` (an operator, a class) of a namespace that no installed library registered."""
    package = package_of(namespace)
    if package is None:
        return MissingLibraryError(
            f"{what} is not there: no library that is imported brings '{namespace}'.\n"
            f"Hint: Import the library that registers '{namespace}', then call this again."
        )
    return MissingLibraryError(
        f"{what} is not there: the package '{package}' brings it.\n"
        f"Hint: Install '{package}' and import it, then call this again."
    )


def missing_operation(node: Node) -> Callable[..., Any]:
    """Return an operation for ``node``, whose operator is unknown: each call looks it up again, and if it is still
    unknown raises a :class:`MissingLibraryError` that names the library which defines it."""
    namespace, _, name = node.kind.partition("::")
    names = node.attributes.get(KEYWORDS, [])
    assert isinstance(names, list)
    first = len(node.inputs) - len(names)

    def run(*arguments: Any) -> Any:
        if not REGISTRY.overloads(node.kind):
            raise missing_library(f"The operator '{node.kind}'", namespace)
        found = getattr(getattr(torch.ops, namespace), name)
        keywords = {str(name): value for name, value in zip(names, arguments[first:], strict=True)}
        return found(*arguments[:first], **keywords)

    return run


def object_method(owner: str, name: str) -> Callable[..., Any]:
    """Return a function that calls the method ``name`` of its first argument, an object of the C++ class ``owner``."""
    python = python_class_of(owner)
    if python is not None and name in python.methods:
        found = python.methods[name][1]
        assert found is not None, "constructors make objects"
        return found

    def run(target: Any, *arguments: Any) -> Any:
        return getattr(target, name)(*arguments)

    return run


def library_constructor(name: str) -> Callable[..., Any]:
    """Return a function that constructs an object of the C++ class ``name`` (``__torch__.torch.classes.space.Name``).
    It raises :class:`MissingLibraryError` if no library has registered the class by the time of the call."""
    namespace, _, basename = name.removeprefix(LIBRARY_CLASSES).partition(".")
    python = python_class_of(name)
    if python is not None and python.make is not None:
        return python.make

    def run(*arguments: Any) -> Any:
        try:
            found = getattr(getattr(torch.classes, namespace), basename)
        except RuntimeError:
            raise missing_library(f"The class 'torch.classes.{namespace}.{basename}'", namespace) from None
        return found(*arguments)

    return run
