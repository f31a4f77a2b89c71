"""The drop-in: while it is installed, ``torch.jit``'s names refer to this package.

Nothing in ``torch.jit`` is overwritten. While the drop-in is installed, the modules have another class. That class
looks up replaced names by their reader: code of PyTorch's own TorchScript, its compiler and its exporter to ONNX, and
of this package, gets the original, since ``torch.jit`` is built on its own names, and objects that it made before must
continue to work. All other code gets this package's replacement.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, Final

import torch

from rekindle.api.drop_in.graph_views.passes import FUNCTIONS_OF_GRAPHS, for_views
from rekindle.api.drop_in.torch_jit_shims import SHIMS
from rekindle.api.drop_in.usage import Usage, observers
from rekindle.frontend.dialect import DIALECT
from rekindle.program import torch_jit

_INSIDERS: Final = ("torch.jit", "torch._jit_internal", "torch._dynamo", "torch.onnx", "rekindle")
"""The modules that see PyTorch's original names, with their submodules. The exporter to ONNX passes graphs to C++."""

_UNSEEN: Final = object()
_ABSENT: Final = object()
"""The original of a name that ``torch.jit`` does not have."""


class _Taken:
    """A name of ``torch.jit`` that is ``ours`` for all readers but ``_INSIDERS``, which get the original.

    If other code assigns a value while the drop-in is installed, all readers get that value until the previous one is
    assigned again: tools that patch names do that when they are done. A value that an insider assigns replaces the
    original.
    """

    def __init__(self, name: str, ours: Any) -> None:
        self.name = name
        self.ours = ours
        self.original: Any = _UNSEEN

    def __get__(self, module: ModuleType, owner: type) -> Any:
        found = self._value(module)
        if found is self.original and not _is_insider(sys._getframe(1)):
            return self.ours
        if found is _ABSENT:
            raise AttributeError(f"module '{module.__name__}' has no attribute '{self.name}'")
        return found

    def __set__(self, module: ModuleType, value: Any) -> None:
        self._value(module)
        if _is_insider(sys._getframe(1)):
            self.original = value
        value = self.original if value is self.ours else value
        if value is _ABSENT:
            vars(module).pop(self.name, None)
        else:
            vars(module)[self.name] = value

    def _value(self, module: ModuleType) -> Any:
        """Return the value in the module's namespace, or ``_ABSENT``. The first call also saves it as the original."""
        found = vars(module).get(self.name, _ABSENT)
        if self.original is _UNSEEN:
            self.original = found
        return found


def _is_insider(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__") or ""
    return any(name == insider or name.startswith(f"{insider}.") for insider in _INSIDERS)


def _front(module: ModuleType) -> type[ModuleType]:
    """Return a class for ``module`` whose descriptors look up the replaced names. ``torch.jit`` has all of these names,
    even those that PyTorch has removed; the modules within it have those that they had."""
    shims = {**SHIMS, **_state.substitutes}
    names = shims if module is torch_jit.module() else shims.keys() & vars(module).keys()
    # Python 3.14 reads an attribute that is read often straight from the dictionary of a module, whatever descriptors
    # its class has, unless the class looks attributes up in another way than modules do.
    lookup = {"__getattribute__": object.__getattribute__, "__getattr__": _other_attribute}
    return type("ModuleWithStandIns", (ModuleType,), {**lookup, **{name: _Taken(name, shims[name]) for name in names}})


def _other_attribute(module: ModuleType, name: str) -> Any:
    """Return what the module's own ``__getattr__`` returns for a missing attribute.

    Raises:
        AttributeError: the module has no such function, or the function raises it.
    """
    own = vars(module).get("__getattr__")
    if own is not None:
        return own(name)
    raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'", name=name, obj=module)


# ----------------------------------------------------------------------------------------------------- in and out again


@dataclass(slots=True)
class _State:
    """The requested and the actual state of the drop-in."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_permanent: bool = False
    """Whether :func:`install` was called."""
    is_in_place: bool = False
    functions: dict[str, Any] = field(default_factory=dict)
    """The functions of ``torch._C`` that are replaced by ones that take views of graphs too."""
    substitutes: dict[str, Any] = field(default_factory=dict)
    """Replacements of names that override :data:`SHIMS`."""


_state = _State()


def install() -> None:
    """Replace the names of ``torch.jit`` with this package's, in the whole process, until :func:`uninstall`.

    Modules that imported a name before (``from torch.jit import script``) keep it, so call this first. Installing twice
    has the effect of installing once. ``torch.jit.fuser``, ``enable_onednn_fusion`` and the switches in ``torch._C``
    stay PyTorch's.

    Example:
        >>> rekindle.install()
        >>> compiled = torch.jit.script(torch.nn.ReLU())
        >>> rekindle.uninstall()
        >>> isinstance(compiled, rekindle.ScriptModule)
        True
    """
    with _state.lock:
        _state.is_permanent = True
        _put()


def install_recording(substitutes: Mapping[str, Any]) -> None:
    """Install the drop-in as :func:`install` does, with ``substitutes`` as the replacements of some names: functions
    that record what is compiled.

    This is for a process that does nothing else. The drop-in must not be installed yet, which is asserted.
    """
    assert not _state.is_in_place
    _state.substitutes = dict(substitutes)
    install()


def uninstall() -> None:
    """Undo :func:`install`. Without an install it has no effect. Within ``with installed()``, the end of the block
    restores the names.

    Example:
        >>> rekindle.install()
        >>> rekindle.uninstall()
        >>> rekindle.is_installed()
        False
    """
    with _state.lock:
        _state.is_permanent = False
        _put()


@contextlib.contextmanager
def installed() -> Iterator[Usage]:
    """Replace the names of ``torch.jit`` with this package's within a ``with`` block: see :func:`install`.

    Blocks may be nested and may overlap in several threads; the end of the last one restores the names, unless
    :func:`install` is in effect.

    Yields:
        The number and kinds of programs that are compiled or loaded under these names within the block, in any thread.

    Example:
        >>> with rekindle.installed() as usage:
        ...     net = torch.jit.script(torch.nn.ReLU())
        >>> usage.count("module"), isinstance(net, rekindle.ScriptModule)
        (1, True)
    """
    usage = Usage()
    with _state.lock:
        observers.append(usage)
        _put()
    try:
        yield usage
    finally:
        with _state.lock:
            observers.remove(usage)
            _put()


def is_installed() -> bool:
    """Return whether the names of ``torch.jit`` are replaced with this package's now.

    Example:
        >>> with rekindle.installed():
        ...     within = rekindle.is_installed()
        >>> within, rekindle.is_installed()
        (True, False)
    """
    return _state.is_in_place


def _put() -> None:
    """Replace or restore the names of ``torch.jit``, as :func:`install`, :func:`uninstall` and the open blocks require.

    Functions of ``torch._C`` that take graphs, and the dialect's conversion of tensors to numbers, are switched with
    them. The caller holds the lock. No other function of the package assigns to these names.
    """
    wanted = _state.is_permanent or bool(observers)
    if wanted == _state.is_in_place:
        return
    _state.is_in_place = wanted
    DIALECT.tensors_as_numbers = wanted
    # The names can be had of these modules too: `from torch.jit._script import ScriptModule`.
    torch_jit.provide()
    for module in (torch_jit.module(), *torch_jit.parts()):
        module.__class__ = _front(module) if wanted else ModuleType
    for name in FUNCTIONS_OF_GRAPHS:
        if not hasattr(torch._C, name):
            continue
        if wanted:
            _state.functions[name] = getattr(torch._C, name)
            setattr(torch._C, name, for_views(name))
        else:
            setattr(torch._C, name, _state.functions.pop(name))
