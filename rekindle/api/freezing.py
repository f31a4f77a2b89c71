"""``rekindle.freeze`` and what goes with it: modules that will not change any more, made faster by that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.errors import NotScriptableError
from rekindle.program.modules.freezing import for_inference, frozen, methods_named, optimize_methods
from rekindle.program.modules.module import ScriptModule


def freeze(
    module: ScriptModule, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """A copy of a compiled module, in evaluation mode, whose values are parts of its program.

    Calls of its parts are inlined. Attributes that no method writes to (parameters, buffers, numbers, lists …) become
    constants of ``forward``, and what can be computed of them is computed now. The attributes, parts and methods that
    this leaves without a use are not there any more, but for those named in ``preserved_attrs``: ``"weight"``,
    ``"head.scale"``, ``"encode"``. What is preserved can be assigned to, and calls see it.

    ``optimize_numerics``: computations may be merged that give the same up to rounding, as in
    :func:`run_frozen_optimizations`.

    The module that is handed over stays as it is; nothing that happens to it later concerns the copy.

    Raises:
        NotScriptableError: it is no compiled module, or in training mode; or there is nothing of a preserved name.
    """
    _check(module, "freeze")
    if "training" in module.script_type.attributes and module.training:
        raise NotScriptableError("'freeze' takes modules in evaluation mode", hint="call .eval() first")
    return frozen(module, preserved_attrs or (), numerics=optimize_numerics)


def run_frozen_optimizations(
    module: ScriptModule, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Make the methods of a frozen module faster, in place, as :func:`freeze` does.

    With ``optimize_numerics`` normalisations, and sums and products with constants, are folded into the weights of
    convolutions and linear maps in front of them: answers differ by rounding. ``preserved_methods`` are the methods
    besides ``forward`` that the module was frozen with; all that it has are optimised.

    Raises:
        NotScriptableError: it is no compiled module, or has no method of one of the names.
    """
    _check(module, "run_frozen_optimizations")
    for name in preserved_methods or ():
        if not methods_named(module.script_type, name):
            raise NotScriptableError(f"the module '{module.original_name}' has no method '{name}'")
    optimize_methods(module, numerics=optimize_numerics)


def optimize_for_inference(module: ScriptModule, other_methods: Sequence[str] | None = None) -> ScriptModule:
    """A frozen copy of a compiled module, in evaluation mode, with programs for this machine.

    Beyond what :func:`freeze` does, convolutions, large linear maps and attention of 32-bit floats on the CPU run the
    fastest of several kernels, with packed weights and the activation that follows. The first call measures them.
    ``other_methods`` are the methods besides ``forward`` that are kept. What is saved of the copy is the frozen module:
    optimise it anew where it is loaded.

    Raises:
        NotScriptableError: it is no compiled module, or has no method of one of the names.
    """
    _check(module, "optimize_for_inference")
    return for_inference(module, other_methods or ())


def _check(module: Any, name: str) -> None:
    if not isinstance(module, ScriptModule):
        raise NotScriptableError(
            f"'{name}' takes compiled modules, not a {type(module).__name__}",
            hint="compile it first: rekindle.script(module)",
        )
