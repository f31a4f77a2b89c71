"""Compiled modules: ``nn.Module`` on the outside, a typed object of compiled methods within."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

from rekindle.errors import CompileError, Diagnostics, SourceRange
from rekindle.errors.layer_hooks import LayerHook
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.frontend.sugared_values.classes import ObjectBinding as ObjectBinding
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassAttribute, ClassType, InterfaceType, NoneType, TensorType, mismatch_note
from rekindle.ir.types.named import AttributeKind
from rekindle.program import public_names
from rekindle.program.calling import call, check_parts, fit_value, has_late_hooks, interceptors, late_hooks, runner_of
from rekindle.program.dynamo import skipped_by_dynamo
from rekindle.program.function import Method, Overloaded
from rekindle.program.modules.attribute import ATTRIBUTES
from rekindle.program.modules.overrides import METHODS, as_written, overridable, overrides_state_dict, python_class_of
from rekindle.program.saving import Savable
from rekindle.program.sources.compilation_unit import caller_resolver, parse_definitions
from rekindle.program.sources.definition import define_function
from rekindle.runtime.calls.arguments import describe

_SHARED = frozenset(
    {
        *("_rekindle_type", "_rekindle_binding", "_rekindle_python_class"),
        *("_rekindle_plain_type", "_rekindle_passes", "_rekindle_method_class"),
    }
)
"""State that copies of a module share."""

PythonAttribute = Callable[["ScriptModule", type, str], Any]

python_attribute: Final = LayerHook[PythonAttribute]("rekindle.scripting", lambda module, cls, name: None)
"""Hook: return an attribute that a Python class leaves to Python, bound to a compiled module; None if there is none."""

compile_instance: Final = LayerHook[Callable[["ScriptModule"], None]]("rekindle.scripting")
"""Hook: turn an object of a user's class, whose ``__init__`` has ended, into a compiled module in place."""

_OF_OBJECTS_IN_CPP: Final = frozenset({"_c", "_save_for_lite_interpreter", "_save_to_buffer_for_lite_interpreter"})
_IN_CPP: Final = (
    "this needs PyTorch's own compiled module: save this one as an archive, and load it with PyTorch's torch.jit.load, "
    "in a process without rekindle.install()"
)
"""The hint for the attributes in ``_OF_OBJECTS_IN_CPP``, which tools for mobile devices read of PyTorch's modules."""

_OF_FORWARD = frozenset(
    {
        "graph",
        "inlined_graph",
        "schema",
        "code",
        "code_with_constants",
        "get_debug_state",
        "graph_for",
        "show",
        "measure",
    }
)
"""Names that a module forwards to its ``forward``, unless it has attributes with these names."""


def _hint_for_attribute(name: str, methods: Sequence[str]) -> str:
    """Return a hint for the error about a missing attribute ``name`` of a module with these compiled ``methods``; empty
    if there is none."""
    if name in _OF_OBJECTS_IN_CPP:
        return f"\nHint: {_IN_CPP}"
    if name in _OF_FORWARD and methods:
        known = ", ".join(methods)
        return f"\nHint: the module has no method 'forward'; take '{name}' from one of its methods: {known}"
    return ""


_FORWARD, _FORWARD_PRE, _BACKWARD, _BACKWARD_PRE = (
    getattr(torch.nn.modules.module, f"_global_{name}_hooks")
    for name in ("forward", "forward_pre", "backward", "backward_pre")
)
"""The hooks that are registered for every module."""

_ModuleClass: Final[Any] = torch.nn.Module
_CALL: Final = _ModuleClass.__call__
"""How modules are called, unless a tool that observes calls replaces it."""

_CHANGES = frozenset({"append", "extend", "insert", "pop", "popitem", "clear", "update", "setdefault"})
"""Methods of PyTorch's containers that change which items there are."""


class _CompiledHook:
    """A compiled hook, as ``nn.Module`` calls hooks: with the module, a tuple of arguments, and, after ``forward``, the
    result."""

    def __init__(self, record: GraphFunction) -> None:
        self.record = record

    def __call__(self, module: torch.nn.Module, *given: Any) -> Any:
        return call(self.record, (module, *given), {})

    def __deepcopy__(self, memo: dict[int, object]) -> _CompiledHook:
        return self  # it never changes


class ScriptModule(torch.nn.Module, Savable):
    """A compiled module.

    It is an ``nn.Module`` with the parameters, buffers and submodules of the module that was compiled, so
    ``parameters()``, ``state_dict()``, ``to()``, ``train()``, hooks and optimizers work on it. Compiled code reads a
    replaced parameter at the next call. Other attributes have types, which assignments are checked against.

    Hooks that a module has when it is compiled are compiled with it. Hooks that are registered later run when Python
    calls the module that has them; such a module cannot be called by compiled code.

    :func:`rekindle.script` compiles modules. A class that derives from ScriptModule compiles its objects when
    ``__init__`` ends: the methods that :func:`rekindle.script_method` marks, and the sources that ``define`` is given.

    Example:
        >>> net = rekindle.script(torch.nn.Linear(3, 2, bias=False))
        >>> isinstance(net, rekindle.ScriptModule), isinstance(net, torch.nn.Module)
        (True, True)
        >>> [name for name, _ in net.named_parameters()]
        ['weight']
    """

    _rekindle_type: ClassType
    _rekindle_binding: SelfBinding
    _rekindle_python_class: type | None
    _rekindle_method_class: type[Method] = Method
    """The class of its methods."""
    _has_compiled_forward: ClassVar[bool] = True
    """Whether ``forward`` is compiled. False for derived classes whose ``forward`` is a Python function."""

    def __init__(self) -> None:
        super().__init__()
        if type(self) is ScriptModule:
            compile_instance.get()(self)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._has_compiled_forward = not isinstance(inspect.getattr_static(cls, "forward"), types.FunctionType)
        initialize = cls.__init__

        @functools.wraps(initialize)
        def initialized(self: ScriptModule, *args: Any, **kwargs: Any) -> None:
            initialize(self, *args, **kwargs)
            if type(self) is cls:
                compile_instance.get()(self)

        cls.__init__ = initialized  # type: ignore[method-assign]

    @classmethod
    def _of_type(
        cls, type: ClassType, *, binding: SelfBinding | None = None, python_class: type | None = None
    ) -> ScriptModule:
        """Return a module of this type whose attributes are not set yet."""
        self = cls.__new__(cls)
        torch.nn.Module.__init__(self)
        self._take_type(type, binding or ObjectBinding(type), python_class)
        return self

    def _take_type(self, type: ClassType, binding: SelfBinding, python_class: builtins.type | None) -> None:
        """Turn this module into a compiled module of this type, whose attributes are not set yet."""
        own = self.__dict__
        own["_rekindle_type"] = type
        own["_rekindle_binding"] = binding
        own["_rekindle_python_class"] = python_class

    @property
    def _is_compiled(self) -> bool:
        """Whether the module is compiled; false while the ``__init__`` of a user's class runs."""
        return "_rekindle_type" in self.__dict__

    def _slot(self, name: str) -> ClassAttribute | None:
        """Return the typed attribute ``name``; None if there is none."""
        return self._rekindle_type.attributes.get(name) if self._is_compiled else None

    def _register_hooks(self) -> None:
        """Register the compiled hooks of the module's type as hooks of ``nn.Module``, so that calls from Python run
        them."""
        for record in self._rekindle_type.pre_hooks:
            super().register_forward_pre_hook(_CompiledHook(record))
        for record in self._rekindle_type.hooks:
            super().register_forward_hook(_CompiledHook(record))

    def register_forward_hook(self, hook: Any, **options: Any) -> RemovableHandle:
        return self._added(super().register_forward_hook(hook, **options), "_forward_hooks")

    def register_forward_pre_hook(self, hook: Any, **options: Any) -> RemovableHandle:
        return self._added(super().register_forward_pre_hook(hook, **options), "_forward_pre_hooks")

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        return self._added(super().register_full_backward_hook(hook, prepend), "_backward_hooks")

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        return self._added(super().register_full_backward_pre_hook(hook, prepend), "_backward_pre_hooks")

    def _added(self, handle: RemovableHandle, table: str) -> RemovableHandle:
        """Record the hook of ``handle``, which compiled code does not run, and return ``handle``. Calls of compiled
        modules that contain this one raise as long as the hook is registered."""
        self.__dict__.setdefault("_rekindle_late_hooks", []).append((table, handle.id))
        late_hooks.add(self)
        return handle

    def _as_saved(self) -> ScriptModule:
        """Return the module that is saved in archives instead of this one."""
        return self

    def _take_hooks(self, other: ScriptModule) -> None:
        """Copy the Python forward hooks and forward pre-hooks of ``other`` to the module. If ``other`` has compiled
        hooks, register those of the module's own type instead of copying them."""
        for ours, theirs in (
            (self._forward_pre_hooks, other._forward_pre_hooks),
            (self._forward_hooks, other._forward_hooks),
        ):
            ours.update((key, hook) for key, hook in theirs.items() if not isinstance(hook, _CompiledHook))
        self._forward_hooks_with_kwargs.update(other._forward_hooks_with_kwargs)
        self._forward_pre_hooks_with_kwargs.update(other._forward_pre_hooks_with_kwargs)
        if any(isinstance(hook, _CompiledHook) for hook in other._forward_hooks.values()) or any(
            isinstance(hook, _CompiledHook) for hook in other._forward_pre_hooks.values()
        ):
            self._register_hooks()

    # ---------------------------------------------------------------------------------------------------------- program

    @property
    def script_type(self) -> ClassType:
        """The class type of the module in programs."""
        return self._rekindle_type

    @property
    def original_name(self) -> str:
        """The name of the class that the module was made from."""
        if not self._is_compiled:
            return type(self).__name__
        python_class = self._rekindle_python_class
        return self._rekindle_type.basename if python_class is None else python_class.__name__

    @property
    def forward(self) -> Any:  # type: ignore[override]
        """The compiled ``forward``; its overloads if it has several.

        Raises:
            AttributeError: the module has no compiled ``forward``.
        """
        record = self._rekindle_type.methods.get("forward")
        if record is None:
            overloaded = self._overloaded("forward")
            if overloaded is not None:
                return overloaded
            raise AttributeError(f"the module '{self.original_name}' has no compiled method 'forward'")
        return self._rekindle_method_class(self, record)

    def compile(self, /, *args: Any, **kwargs: Any) -> None:
        """Optimize ``forward`` for calls with such arguments now, not in the first of them. It is not called.

        Raises:
            ArgumentError: the arguments do not fit the schema of ``forward``.
            AttributeError: the module has no compiled ``forward``, or ``forward`` is overloaded.
        """
        self.forward.compile(*args, **kwargs)

    @skipped_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward``, with the hooks that Python has registered; return its result.

        Raises:
            ArgumentError: the arguments do not fit the schema.
            RuntimeError: a submodule has a hook that was registered after compilation.
        """
        own = self.__dict__
        if late_hooks:
            check_parts(self)
        if (
            interceptors
            or own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or own.get("_compiled_call_impl") is not None
            or _FORWARD
            or _FORWARD_PRE
            or _BACKWARD
            or _BACKWARD_PRE
            or _ModuleClass.__call__ is not _CALL
        ):
            return super().__call__(*args, **kwargs)
        record = self._rekindle_type.methods.get("forward")
        if record is None or not self._has_compiled_forward:
            return self.forward(*args, **kwargs)
        return (record.runner or runner_of(record))(record, (self, *args), kwargs)

    def define(self, source: str) -> None:
        """Compile the methods in ``source``, a program text whose functions take ``self`` first, and add them.

        They are added to the type, so that all modules of the same type have them. Within the ``__init__`` of a user's
        class, ``source`` is only recorded; its methods are compiled with the others when ``__init__`` ends.

        Raises:
            CompileError: a method cannot be compiled, or the module has a method, attribute or constant of that name.
                None of the methods is added then.
        """
        resolver = caller_resolver(1)
        if self._is_compiled:
            self._define(source, resolver)
        else:
            self.__dict__.setdefault("_rekindle_definitions", []).append((source, resolver))

    def _define(self, source: str, resolver: Resolver) -> None:
        type = self._rekindle_type
        added: list[GraphFunction] = []
        try:
            for definition in parse_definitions(source):
                name = definition.name.name
                self._check_new_method(name, definition.name.range)

                def define(record: GraphFunction, definition: Any = definition) -> None:
                    define_function(record, definition, resolver, self_binding=self._rekindle_binding)

                type.methods[name] = GraphFunction(f"{type.name}.{name}", function_creator=define)
                added.append(type.methods[name])
            diagnostics = Diagnostics()
            for record in added:
                with diagnostics.recovering():
                    record.ensure_defined()
            diagnostics.raise_all()
        except CompileError:
            for record in added:
                del type.methods[record.basename]
            raise

    def _check_new_method(self, name: str, range: SourceRange) -> None:
        type = self._rekindle_type
        for what, table in (("method", type.methods), ("attribute", type.attributes), ("constant", type.constants)):
            if name in table:
                raise CompileError(f"the module '{self.original_name}' has a {what} '{name}' already", range)

    # ------------------------------------------------------------------------------------------------------- attributes

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that is not in the module's own dict: a parameter, buffer, submodule, method, constant,
        the value of a property, an attribute that the Python class does not compile, or a name that the module forwards
        to ``forward``. An attribute with an initial value is created by its first read.

        Raises:
            AttributeError: there is none of these.
        """
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            held = own.get(table)
            if held is not None and name in held:
                return held[name]
        type = own.get("_rekindle_type")
        if isinstance(type, ClassType):
            record = type.methods.get(name)
            if record is not None:
                return self._rekindle_method_class(self, record)
            accessors = type.properties.get(name)
            if accessors is not None:
                return Method(self, accessors.getter)()
            if name in type.constants:
                return type.constants[name]
            found = self._python_attribute(name)
            if found is None:
                found = self._overloaded(name)
            if found is not None:
                return found
            if name in _OF_FORWARD and "forward" in type.methods:
                return getattr(self._rekindle_method_class(self, type.methods["forward"]), name)
            slot = type.attributes.get(name)
            if slot is not None and slot.initial is not None:
                own[name] = slot.initial()
                return own[name]
            if slot is not None and slot.is_dynamic:
                raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'")
            hint = _hint_for_attribute(name, list(type.methods))
            raise AttributeError(f"the module '{self.original_name}' has no attribute '{name}'{hint}")
        raise AttributeError(f"'{builtins.type(self).__name__}' object has no attribute '{name}'")

    def _overloaded(self, name: str) -> Overloaded | None:
        """Return the overloads of a method; None if it has none. They are compiled as ``name__0``, ``name__1`` …, and
        archives contain nothing else about them."""
        methods = self._rekindle_type.methods
        found = [methods[f"{name}__{index}"] for index in _consecutive(name, methods)]
        return Overloaded(found, self) if found else None

    def _python_attribute(self, name: str) -> Any:
        """Return an attribute of the module's Python class that is not compiled, bound to this module; None if there is
        none."""
        python_class = self._rekindle_python_class
        return None if python_class is None else python_attribute.get()(self, python_class, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ATTRIBUTES) and not self._is_compiled:
            self.__dict__.setdefault("_rekindle_declared", {})[name] = value.type
            value = value.value
        type = self.__dict__.get("_rekindle_type")
        attribute = type.attributes.get(name) if isinstance(type, ClassType) else None
        if attribute is not None:
            self._set_slot(attribute, value)
            flag = f"_has_{name}"
            if attribute.is_dynamic and isinstance(type, ClassType) and flag in type.attributes:
                self.__dict__[flag] = True  # programs that ask hasattr are to know
            return
        if isinstance(type, ClassType):
            if name in type.constants:
                raise AttributeError(
                    f"'{name}' is a constant of the compiled module '{self.original_name}': "
                    "it was compiled into the program"
                )
            accessors = type.properties.get(name)
            if accessors is not None and accessors.setter is not None:
                Method(self, accessors.setter)(value)
                return
            if name == "forward" or name in type.methods:
                raise AttributeError(
                    f"'{name}' is a method of the compiled module '{self.original_name}' and cannot be replaced; "
                    "replace it in the Python module and compile it again"
                )
            if isinstance(value, torch.nn.Module):
                self._check_new_part(name)
        super().__setattr__(name, value)

    def add_module(self, name: str, module: torch.nn.Module | None) -> None:
        slot = self._slot(name)
        if slot is None:
            self._check_new_part(name)
            super().add_module(name, module)
        else:
            self._set_slot(slot, module)

    def register_module(self, name: str, module: torch.nn.Module | None) -> None:
        self.add_module(name, module)

    def register_parameter(self, name: str, param: torch.nn.Parameter | None) -> None:
        slot = self._slot(name)
        if slot is None:
            super().register_parameter(name, param)
        else:
            self._check_kind(slot, "parameter")
            self._set_slot(slot, param)

    def register_buffer(self, name: str, tensor: torch.Tensor | None, persistent: bool = True) -> None:
        slot = self._slot(name)
        if slot is None:
            # As a persistent one at first: while the drop-in is installed, PyTorch refuses others in a ScriptModule.
            super().register_buffer(name, tensor)
        else:
            self._check_kind(slot, "buffer")
            self._set_slot(slot, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def _check_new_part(self, name: str) -> None:
        """Raise TypeError if compiled code would ignore a new submodule ``name``: in a :class:`ScriptContainer`. Others
        accept it."""

    def _check_kind(self, slot: ClassAttribute, kind: AttributeKind) -> None:
        if slot.kind != kind:
            raise TypeError(
                f"attribute '{slot.name}' of '{self.original_name}' is not a {kind} and cannot become one: "
                "code was compiled for what it was"
            )

    def _set_slot(self, slot: ClassAttribute, value: Any) -> None:
        name = slot.name
        where = f"attribute '{name}' of '{self.original_name}'"
        if isinstance(slot.type, (ClassType, InterfaceType)) and slot.type.is_module:
            _check_module(value, slot.type, where)
            self._modules[name] = value
        elif name in self._parameters or slot.kind == "parameter":
            _check_tensor(value, slot, where)
            before: torch.Tensor | None = self._parameters.get(name)
            if value is None or isinstance(value, torch.nn.Parameter):
                super().register_parameter(name, value)
            else:
                super().__setattr__(name, value)
            self._replace_in_containers([(before, value)])
        elif name in self._buffers or slot.kind == "buffer":
            _check_tensor(value, slot, where)
            before = self._buffers.get(name)
            self._buffers[name] = value
            self._replace_in_containers([(before, value)])
        else:
            self.__dict__[name] = fit_value(value, slot.type, where)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> ScriptModule:
        """Apply ``fn`` to all parameters and buffers in place, as ``to()``, ``half()`` and the like do, and return the
        module. ``fn`` may return new tensors, so lists and dicts among the attributes that hold the old ones are
        updated."""
        before = [(table, dict(table)) for table in (self._parameters, self._buffers)]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._replace_in_containers([(old[name], table.get(name)) for table, old in before for name in old])
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state dict, by the override of the module's Python class if there is one."""
        with self._as_written("state_dict") as module:
            return super().state_dict(*args, **kwargs) if module is self else module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state dict, by the override of the module's Python class if there is one."""
        with self._as_written("load_state_dict") as module:
            if module is self:
                return super().load_state_dict(*args, **kwargs)
            return module.load_state_dict(*args, **kwargs)

    def _save_to_state_dict(self, *args: Any) -> None:
        """Save the module's own state for ``state_dict()``, by the compiled method of this name if there is one."""
        own = self._exported("_save_to_state_dict")
        if own is None:
            super()._save_to_state_dict(*args)
        else:
            own(*args)

    def _load_from_state_dict(self, *args: Any) -> None:
        """Load the module's own state for ``load_state_dict()``: by the override of the Python class, else by the
        compiled method of this name, else as ``nn.Module`` does."""
        with self._as_written("load_state_dict") as module:
            own = self._exported("_load_from_state_dict")
            if module is not self:
                module._load_from_state_dict(*args)
            elif own is not None:
                own(*args)
            else:
                super()._load_from_state_dict(*args)

    @contextmanager
    def _as_written(self, method: str) -> Iterator[torch.nn.Module]:
        """Yield the object whose ``method`` runs: this one; if the Python class overrides the method, or one for state
        dicts that it calls, an object of that class that shares the state of this one. What the block assigns to that
        object is assigned to this one afterwards."""
        python_class = python_class_of(self) if self._is_compiled else None
        if python_class is None or (method not in METHODS and not overrides_state_dict(python_class)):
            yield self
            return
        before = [(table, dict(table)) for table in (self._parameters, self._buffers)]
        with as_written(self, python_class, method) as module:
            yield module
        self._replace_in_containers([(old[name], table.get(name)) for table, old in before for name in old])

    def _exported(self, name: str) -> Method | None:
        record = self._rekindle_type.methods.get(name) if self._is_compiled else None
        return None if record is None else Method(self, record)

    def _replace_in_containers(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Replace old parameters and buffers by new ones in the lists, dicts and tuples among the module's attributes,
        such as the ``_flat_weights`` of an LSTM."""
        changed = {id(old): new for old, new in pairs if old is not None and new is not None and old is not new}
        if not changed or not self._is_compiled:
            return
        own = self.__dict__
        for name, slot in self._rekindle_type.attributes.items():
            if slot.kind == "attribute" and type(own.get(name)) in (list, dict, tuple):
                own[name] = _replaced(own[name], changed)

    def __delattr__(self, name: str) -> None:
        if self._slot(name) is not None:
            raise AttributeError(
                f"attribute '{name}' of '{self.original_name}' belongs to its type and cannot be deleted"
            )
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        if not self._is_compiled:
            return sorted(torch.nn.Module.__dir__(self))
        type = self._rekindle_type
        names = {*torch.nn.Module.__dir__(self), *type.attributes, *type.methods, *type.properties, *type.constants}
        return sorted(names)

    # -------------------------------------------------------------------------------------------------------- nn.Module

    def _get_name(self) -> str:
        return "ScriptModule"

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __copy__(self) -> ScriptModule:
        new = type(self).__new__(type(self))
        for key, value in self.__dict__.items():
            # The tables are the module's own; what is in them is shared.
            new.__dict__[key] = copy.copy(value) if isinstance(value, dict) and key not in _SHARED else value
        if has_late_hooks(new):
            late_hooks.add(new)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        for key, value in self.__dict__.items():
            new.__dict__[key] = value if key in _SHARED else copy.deepcopy(value, memo)
        if has_late_hooks(new):
            late_hooks.add(new)
        return new

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        """Pickle as an archive, which is read as :func:`rekindle.load` reads it: without the Python class.

        Raises:
            SaveError: the module cannot be saved.
        """
        return public_names.public.get()("load"), (self.save_to_buffer(),)


_CONTAINERS_OF_PARAMETERS: Final = (torch.nn.ParameterList, torch.nn.ParameterDict)
_CONTAINERS_OF_MODULES: Final = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)


for _name in METHODS:
    setattr(ScriptModule, _name, overridable(_name, getattr(ScriptModule, _name)))


class ScriptContainer(ScriptModule):
    """A compiled module with a length, items or an order: a ``ModuleList``, a ``Sequential``, a ``ParameterDict`` or a
    class derived from one, or a module with such methods of its own.

    Items cannot be added or deleted: ``del c[i]``, ``c[i] = value`` (both unless they are compiled methods), ``+=`` and
    a new submodule raise TypeError. ``append`` and the like raise AttributeError.
    """

    @property
    def _names(self) -> list[str]:
        """The names of the items in order: of sub-modules, or of parameters."""
        if not self._has_parameters_as_items():
            return list(self._modules)
        return [name for name, slot in self._rekindle_type.attributes.items() if slot.kind == "parameter"]

    def _has_parameters_as_items(self) -> bool:
        """Return whether the items are the parameters, not the sub-modules. A module that was loaded, and whose class
        is one of a program, lists its parameters if it has no sub-modules but a length."""
        python_class = self._rekindle_python_class
        if python_class is not None and issubclass(python_class, _CONTAINERS_OF_PARAMETERS + _CONTAINERS_OF_MODULES):
            return issubclass(python_class, _CONTAINERS_OF_PARAMETERS)
        length = self._own("__len__")
        return not self._modules and (length is None or int(length()) > 0)

    def _check_new_part(self, name: str) -> None:
        raise TypeError(self._cannot_change(f"new item '{name}'"))

    def _cannot_change(self, how: str) -> str:
        return (
            f"a compiled container cannot be changed ({how} of '{self.original_name}'): its loops are unrolled; "
            "change the Python module and compile it again"
        )

    def _python_attribute(self, name: str) -> Any:
        of_class = getattr(self._rekindle_python_class, name, None) if name in _CHANGES else None
        if getattr(of_class, "__module__", None) == torch.nn.ModuleList.__module__:
            raise AttributeError(self._cannot_change(f"'{name}'"))
        return super()._python_attribute(name)

    def __setitem__(self, index: Any, value: Any) -> None:
        own = self._own("__setitem__")
        if own is None:
            raise TypeError(self._cannot_change("assignment to an item"))
        own(index, value)

    def __delitem__(self, index: Any) -> None:
        own = self._own("__delitem__")
        if own is None:
            raise TypeError(self._cannot_change("deletion of an item"))
        own(index)

    def __iadd__(self, other: Any) -> NoReturn:
        raise TypeError(self._cannot_change("'+='"))

    def _own(self, name: str) -> Method | None:
        record = self._rekindle_type.methods.get(name)
        return None if record is None else Method(self, record)

    def __len__(self) -> int:
        own = self._own("__len__")
        return len(self._names) if own is None else int(own())

    def __bool__(self) -> bool:
        own = self._own("__bool__")
        return len(self) > 0 if own is None else bool(own())

    def __iter__(self) -> Iterator[Any]:
        own = self._own("__iter__")
        if own is not None:
            return iter(own())
        if self._is_dict:
            return iter(self._names)
        return iter([getattr(self, name) for name in self._names])

    def __contains__(self, item: Any) -> bool:
        own = self._own("__contains__")
        if own is not None:
            return bool(own(item))
        return item in self._names if self._is_dict else any(item is found for found in self)

    def __getitem__(self, index: Any) -> Any:
        own = self._own("__getitem__")
        if own is not None:
            return own(index)
        names = self._names
        if self._is_dict:
            if index not in names:
                raise KeyError(index)
            return getattr(self, index)
        if isinstance(index, slice):
            return [getattr(self, name) for name in names[index]]
        if not -len(names) <= index < len(names):
            raise IndexError(f"index {index} is out of range for {len(names)} items")
        return getattr(self, names[index])

    @property
    def _is_dict(self) -> bool:
        python_class = self._rekindle_python_class
        return python_class is not None and issubclass(python_class, (torch.nn.ModuleDict, torch.nn.ParameterDict))

    def keys(self) -> list[str]:
        return self._names

    def values(self) -> list[Any]:
        return [getattr(self, name) for name in self._names]

    def items(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self._names]


def _consecutive(name: str, methods: Mapping[str, object]) -> Iterator[int]:
    """Yield 0, 1 … as long as there is a method ``name__0``, ``name__1`` …."""
    return itertools.takewhile(lambda index: f"{name}__{index}" in methods, itertools.count())


def _replaced(value: Any, changed: dict[int, Any]) -> Any:
    """Return ``value`` with every object in it that is a key of ``changed``, by its id, replaced; lists and dicts in
    place."""
    kind = type(value)
    if kind is list:
        value[:] = [_replaced(item, changed) for item in value]
    elif kind is dict:
        value.update([(key, _replaced(item, changed)) for key, item in value.items()])
    elif kind is tuple:
        return tuple(_replaced(item, changed) for item in value)
    return changed.get(id(value), value)


def _check_module(value: Any, type: ClassType | InterfaceType, where: str) -> None:
    if not isinstance(value, ScriptModule):
        raise TypeError(f"{where} is a compiled module, got {describe(value)}; compile it with rekindle.script first")
    if not value._rekindle_type.is_subtype_of(type):
        found = value._rekindle_type
        note = mismatch_note(found, type) or ": code was compiled for the first"
        raise TypeError(f"{where} is a {type.name}, got a {found.name}{note}")


def _check_tensor(value: Any, slot: ClassAttribute, where: str) -> None:
    if value is None:
        if isinstance(slot.type, TensorType):
            raise TypeError(f"{where} is a Tensor, got None: code was compiled for a Tensor")
    elif not isinstance(value, torch.Tensor):
        raise TypeError(f"{where} is a {slot.kind} and takes a Tensor, got {describe(value)}")
    elif isinstance(slot.type, NoneType):
        raise TypeError(f"{where} was None when the module was compiled, and code was compiled for that")
