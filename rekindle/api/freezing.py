"""``rekindle.freeze``, ``run_frozen_optimizations`` and ``optimize_for_inference``: modules for inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rekindle.errors import NotScriptableError
from rekindle.passes.frozen_modules.round_weights import DTYPES
from rekindle.program.modules.freezing import for_inference, frozen, methods_named, optimize_methods
from rekindle.program.modules.module import ScriptModule


def freeze(
    module: ScriptModule, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """Return a copy of a compiled module whose attributes are constants of its program. ``module`` is not modified.

    Calls of submodules are inlined. Attributes that no method writes to (parameters, buffers, numbers, lists) become
    constants of ``forward`` and of preserved methods, and expressions of constants are evaluated. Attributes,
    submodules and methods that are no longer used are removed, except those named in ``preserved_attrs``.

    Args:
        module: a compiled module in evaluation mode.
        preserved_attrs: names to keep: ``"weight"``, ``"head.scale"``, ``"encode"``. They can be assigned to.
        optimize_numerics: also apply rewrites whose results differ by rounding: see :func:`run_frozen_optimizations`.

    Raises:
        NotScriptableError: ``module`` is not a compiled module, or is in training mode, or has no attribute of a
            preserved name.
        TypeError: ``preserved_attrs`` is a string.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)).eval()
        >>> frozen = rekindle.freeze(rekindle.script(net))
        >>> list(frozen.parameters()), frozen.graph.find_node("aten::batch_norm")
        ([], None)
    """
    _check(module, "freeze")
    if "training" in module.script_type.attributes and module.training:
        raise NotScriptableError("'freeze' takes modules in evaluation mode", hint="call .eval() first")
    return frozen(module, _names(preserved_attrs, "preserved_attrs"), numerics=optimize_numerics)


def run_frozen_optimizations(
    module: ScriptModule, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Optimize the methods of a frozen module in place, as :func:`freeze` does.

    Args:
        module: a frozen module.
        optimize_numerics: fold normalizations, and additions of and multiplications by constants, into the weights of
            the convolutions and linear maps before them. Results differ by rounding.
        preserved_methods: the methods besides ``forward`` that the module was frozen with. All methods are optimized.

    Raises:
        NotScriptableError: ``module`` is not a compiled module, or has no method of one of the names.
        TypeError: ``preserved_methods`` is a string.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)).eval()
        >>> frozen = rekindle.freeze(rekindle.script(net), optimize_numerics=False)
        >>> rekindle.run_frozen_optimizations(frozen)
        >>> frozen.graph.find_node("aten::batch_norm") is None
        True
    """
    _check(module, "run_frozen_optimizations")
    for name in _names(preserved_methods, "preserved_methods"):
        if not methods_named(module.script_type, name):
            raise NotScriptableError(f"the module '{module.original_name}' has no method '{name}'")
    optimize_methods(module, numerics=optimize_numerics)


def optimize_for_inference(
    module: ScriptModule, other_methods: Sequence[str] | None = None, *, weights: torch.dtype | None = None
) -> ScriptModule:
    """Return a frozen copy of a compiled module, in evaluation mode, with kernels for this machine.

    It does what :func:`freeze` does. Besides, convolutions, large linear maps and attention of 32-bit floats on the CPU
    run the fastest of several kernels, with packed weights and the activation that follows. The first call measures
    them. The copy is saved as the frozen module; call this again after loading it.

    Args:
        module: a compiled module.
        other_methods: methods to keep besides ``forward``.
        weights: ``torch.bfloat16`` or ``torch.int8``, to round the weights of linear maps of 65,536 weights or more,
            for less time where they are read from memory: maps of few rows. int8 has a scale for each output. Inputs,
            sums and results stay 32-bit floats. By default, weights are not rounded.

    Raises:
        NotScriptableError: ``module`` is not a compiled module, or has no method of one of the names.
        TypeError: ``other_methods`` is a string.
        ValueError: ``weights`` is another dtype.

    Example:
        >>> net = torch.nn.Conv2d(3, 8, 3).eval()
        >>> fast = rekindle.optimize_for_inference(rekindle.script(net))
        >>> x = torch.randn(1, 3, 16, 16)
        >>> with torch.no_grad():
        ...     torch.allclose(fast(x), net(x), atol=1e-5)
        True
    """
    _check(module, "optimize_for_inference")
    if weights is not None and weights not in DTYPES:
        raise ValueError(f"weights are rounded to torch.bfloat16 or torch.int8, not to {weights}")
    return for_inference(module, _names(other_methods, "other_methods"), weights)


def _check(module: Any, name: str) -> None:
    if not isinstance(module, ScriptModule):
        raise NotScriptableError(
            f"'{name}' takes compiled modules, not a {type(module).__name__}",
            hint="compile it first: rekindle.script(module)",
        )


def _names(names: Sequence[str] | None, parameter: str) -> Sequence[str]:
    """Return the names that a caller gives.

    Raises:
        TypeError: ``names`` is a string, whose elements are letters.
    """
    if isinstance(names, str):
        raise TypeError(f"'{parameter}' takes a list of names, not a string: {parameter}=[{names!r}]")
    return names or ()
