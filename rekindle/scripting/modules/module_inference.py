"""Inference of :class:`ConcreteModuleType` from an ``nn.Module``: collect all that compiled code may depend on from the
module, its class and its submodules."""

from __future__ import annotations

import enum
import inspect
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from rekindle.errors import Cause, CompileError, NotScriptableError
from rekindle.ir.types import FLOAT, NONE, InterfaceType, ListType, Type
from rekindle.program import torch_jit
from rekindle.program.function import Function
from rekindle.program.modules.attribute import ATTRIBUTES
from rekindle.program.modules.module import ScriptModule
from rekindle.program.modules.overrides import bound_function
from rekindle.scripting.annotations import class_annotations, declared_in_init, find_type, is_final, spell_annotation
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.constants import is_constant
from rekindle.scripting.library_values.builtin_table import builtin_kind
from rekindle.scripting.library_values.math_functions import math_name
from rekindle.scripting.library_values.python_objects import is_known
from rekindle.scripting.modules.class_members import own_method
from rekindle.scripting.modules.distributed_wrappers import check_not_distributed
from rekindle.scripting.modules.forwarding_calls import constants_of_call
from rekindle.scripting.modules.module_types import ConcreteModuleType, Container, ModuleFacts
from rekindle.scripting.resolver import PythonResolver
from rekindle.scripting.value_types import NotInferable, infer, of_own_class

_CONTAINERS: Final = (
    (torch.nn.ModuleDict, Container.DICT),
    ((torch.nn.ModuleList, torch.nn.Sequential), Container.LIST),
    (torch.nn.ParameterList, Container.PARAMETER_LIST),
    (torch.nn.ParameterDict, Container.PARAMETER_DICT),
)

_INTERNAL: Final = frozenset(vars(torch.nn.Module())) - {"training"}
"""The names in the dict of a module that belong to ``nn.Module`` itself."""


def _is_declaration(name: str) -> bool:
    """Return whether an attribute of this name is a declaration for a compiler or for Python, such as
    ``__constants__``, and not data."""
    return name in ("__constants__", "__orig_class__") or name.startswith("__jit_")


_types: weakref.WeakValueDictionary[object, ConcreteModuleType] = weakref.WeakValueDictionary()
"""The types of the compiled modules that are alive, by the key of their facts."""


def module_type_of(module: torch.nn.Module) -> ConcreteModuleType:
    """Return the type of ``module``. Modules share a type if all properties that compiled code may depend on are equal.

    Raises:
        NotScriptableError: the module, or a submodule, cannot be compiled: see :func:`gather_facts`.
    """
    facts = gather_facts(module)
    key = facts.key()
    found = _types.get(key)
    if found is None:
        found = _types[key] = ConcreteModuleType(facts)
    return found


PartType = Callable[[torch.nn.Module], "ConcreteModuleType"]


def gather_facts(
    module: torch.nn.Module, type_of_module: PartType = module_type_of, *, for_trace: bool = False
) -> ModuleFacts:
    """Return the properties of ``module`` that compiled code may depend on. ``type_of_module`` returns the types of its
    submodules. ``for_trace`` accepts modules that only Python can run, and treats every tensor as a plain tensor
    regardless of declarations.

    Raises:
        NotScriptableError: the module was not initialized, was compiled by ``torch.jit``, or has lazy parameters or
            buffers. Unless ``for_trace``, also if only Python can run it: it is distributed, or has parametrizations or
            backward hooks.
    """
    if not for_trace:
        check_not_distributed(module)
        check_not_parametrized(module)
    return _Gatherer(module, type_of_module, for_trace).gather()


class _Gatherer:
    def __init__(self, module: torch.nn.Module, type_of_module: PartType, for_trace: bool) -> None:
        self.module = module
        self.for_trace = for_trace
        self.type_of_module = type_of_module
        self.cls = type(module)
        self.facts = ModuleFacts(self.cls)
        self.annotations = class_annotations(self.cls)
        self.ignored = frozenset(getattr(module, "__jit_ignored_attributes__", ()))
        self._types: dict[int, Type | None] = {}

    def gather(self) -> ModuleFacts:
        check_initialized(self.module)
        facts, module = self.facts, self.module
        facts.container = next((kind for cls, kind in _CONTAINERS if isinstance(module, cls)), Container.NONE)
        for name, parameter in self._kept(module._parameters):
            facts.attributes[name] = (self._slot_type(name, parameter), "parameter")
        for name, buffer in self._kept(module._buffers):
            facts.attributes[name] = (self._slot_type(name, buffer), "buffer")
        for name, part in self._kept(module._modules):
            self._submodule(name, part)
        self._constants()
        for name, value in self._kept(vars(module)):
            if name not in _INTERNAL and not _is_declaration(name) and not self._is_known(name):
                self._plain(name, value)
        facts.items = _items(module, facts.container)
        facts.repeated, facts.repeated_children = _repeated(module)
        if not self.for_trace:
            self._check_no_backward_hooks()
            facts.hooks_take_keywords = bool(module._forward_hooks_with_kwargs or module._forward_pre_hooks_with_kwargs)
            facts.hooks = tuple(module._forward_hooks.values())
            facts.pre_hooks = tuple(module._forward_pre_hooks.values())
        else:
            facts.has_traced_hooks = bool(module._forward_hooks or module._forward_pre_hooks)
        if own_method(self.cls, "__call__") is not None:
            self._call()
        return facts

    def _call(self) -> None:
        """Determine what the ``__call__`` of the class does. Constants in the class on which that depends become
        constants of the module, since a change of one would take effect in Python alone."""
        facts = self.facts
        constants = constants_of_call(facts, self.ignored)
        facts.does_more_in_call = constants is None
        if constants:
            facts.constants |= constants
            facts.read_by_call = frozenset(constants)

    def _check_no_backward_hooks(self) -> None:
        if self.module._backward_hooks or self.module._backward_pre_hooks:
            raise NotScriptableError(
                f"the module '{self.cls.__name__}' has backward hooks, which compiled code would not run",
                hint="remove them before compiling; those of the whole module may be registered on the compiled one",
            )

    def _kept(self, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in table.items() if name not in self.ignored)

    def _is_known(self, name: str) -> bool:
        facts = self.facts
        return name in facts.attributes or name in facts.submodules or name in facts.constants

    def _slot_type(self, name: str, value: torch.Tensor | None) -> Type:
        """Return the type of a parameter or a buffer: the declared one, such as Optional, or that of its value."""
        declared = self._declared(name)
        if declared is not None and not isinstance(declared, NotInferable) and not self._is_traced_tensor(value):
            return declared
        found = infer(value)
        assert isinstance(found, Type)
        return found

    def _is_traced_tensor(self, value: object) -> bool:
        return self.for_trace and isinstance(value, torch.Tensor)

    def _submodule(self, name: str, part: torch.nn.Module | None) -> None:
        if part is None:
            self.facts.attributes[name] = (NONE, "attribute")
            return
        declared = self._declared(name)
        if isinstance(declared, InterfaceType):
            self.facts.submodules[name] = declared
        else:
            self.facts.submodules[name] = type_of_part(part, self.type_of_module)

    def _constants(self) -> None:
        names = dict.fromkeys(getattr(self.module, "__constants__", ()))
        names |= {name: None for name, (annotation, _) in self.annotations.items() if is_final(annotation)}
        for name in names:
            if self._is_known(name) or name in self.ignored or not hasattr(self.module, name):
                continue  # a parameter, a part, or a name that __init__ did not set
            value = getattr(self.module, name)
            if is_constant(value):
                self.facts.constants[name] = _frozen(self._as_declared(name, value))
            elif name in getattr(self.module, "__constants__", ()) and not _is_callable(value):
                self.facts.failed[name] = (
                    f"it is declared a constant, and a value of class '{spell_annotation(type(value))}' cannot be one; "
                    "constants are numbers, strings, None, dtypes, devices, enum members, and lists and tuples of these"
                )

    def _as_declared(self, name: str, value: Any) -> Any:
        """Return ``value``; an int that is declared a float, as a float."""
        return float(value) if type(value) is int and self._declared(name) == FLOAT else value

    def _plain(self, name: str, value: Any) -> None:
        """Add an ordinary attribute, from the ``__dict__`` of the module, to the facts: a callable, a value with its
        type, or a value that programs cannot use with the reason."""
        if self._callable(name, value):
            return
        declared: Type | NotInferable | None = self._declared(name)
        if declared is None and isinstance(value, ATTRIBUTES):
            declared = self._convert(lambda: find_type(value.type, resolver=self._resolver(self.cls)), value.type)
        if self._is_traced_tensor(value):
            declared = None
        found = of_own_class(declared, _value_of(value)) if isinstance(declared, Type) else infer(_value_of(value))
        if declared is None and (found == NONE or not isinstance(found, Type)):
            # What __init__ declares may be wider than what the value is, and code is written for the value.
            found = self._declared_in_init(name) or found
        if isinstance(found, ListType) and isinstance(value, deque) and value.maxlen is not None:
            found = ListType(found.element, f"deque:{value.maxlen}")
        if isinstance(found, Type):
            self.facts.attributes[name] = (found, "attribute")
            if isinstance(value, (str, int, float)) and name != "training":
                self.facts.present[name] = value
        else:
            reason = declared.reason if isinstance(declared, NotInferable) else found.reason
            self.facts.failed[name] = reason + _advice(declared, value)
            if declared is None and type(value) in (list, dict) and not value and not self.for_trace:
                self.facts.empty[name] = type(value)
            if is_known(value):
                self.facts.objects[name] = value

    def _callable(self, name: str, value: Any) -> bool:
        """Record ``value`` if it is a callable known to the compiler, which is not stored as data; return whether it is
        one."""
        if isinstance(value, torch._ops.OpOverloadPacket):
            self.facts.builtins[name] = value._qualified_op_name
        elif (original := underlying_function(value)) is not None:
            self.facts.functions[name] = original
        elif isinstance(value, Function) or inspect.isfunction(value):
            self.facts.functions[name] = value
        elif (function := bound_function(self.module, value)) is not None:
            self.facts.methods[name] = function
        elif callable(value) and (kind := math_name(value) or builtin_kind(value)) is not None:
            self.facts.builtins[name] = kind
        else:
            return False
        return True

    # ------------------------------------------------------------------------------------------------------ annotations

    def _declared(self, name: str) -> Type | NotInferable | None:
        """Return the type that the class declares for an attribute; None if it declares none, a module class, or
        ``Final`` alone; the reason if the annotation is not a type of programs."""
        entry = self.annotations.get(name)
        if entry is None:
            return None
        annotation, owner = entry
        if annotation is Final or annotation == "Final":
            return None
        return self._convert(lambda: find_type(annotation, resolver=self._resolver(owner)), annotation)

    def _declared_in_init(self, name: str) -> Type | None:
        """Return the type in an annotation in ``__init__``; None if there is none. An annotation that is not a type of
        programs is ignored, since it may be for other tools."""
        entry = declared_in_init(self.cls).get(name)
        if entry is None:
            return None
        text, init = entry
        try:
            return find_type(text, resolver=PythonResolver.of_function(init))
        except CompileError:
            return None

    def _convert(self, find: Callable[[], Type | None], annotation: object) -> Type | NotInferable | None:
        try:
            found = find()
        except CompileError as error:
            return NotInferable(f"its annotation {spell_annotation(annotation)} cannot be used: {error.message}")
        if found is None and inspect.isclass(annotation) and issubclass(annotation, torch.nn.Module):
            return None
        if found is None:
            return NotInferable(f"its annotation {spell_annotation(annotation)} is not a type that a program can use")
        return found

    def _resolver(self, cls: type) -> PythonResolver:
        return PythonResolver(vars(inspect.getmodule(cls) or torch))


_prepared: dict[int, tuple[torch.nn.Module, torch.nn.Module]] = {}
"""The modules that replace others during scripting, by the identity of the replaced module, which is kept alive."""


def prepared(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module to compile: the result of ``module.__prepare_scriptable__`` if it has that method, otherwise
    ``module``."""
    prepare = getattr(module, "__prepare_scriptable__", None)
    if prepare is None:
        return module
    if id(module) not in _prepared:
        _prepared[id(module)] = (module, prepare())
    return _prepared[id(module)][1]


def forget_prepared() -> None:
    """Discard the cached results of ``__prepare_scriptable__``; each is computed again at the next use."""
    _prepared.clear()


def type_of_part(part: torch.nn.Module, type_of_module: PartType = module_type_of) -> ConcreteModuleType:
    """Return the type of a submodule. A submodule that is compiled already has the type that it was compiled with."""
    part = prepared(part)
    if isinstance(part, ScriptModule):
        binding: Any = part._rekindle_binding
        found = getattr(binding, "concrete", None)
        if not isinstance(found, ConcreteModuleType):  # not made from a Python module: its type alone is known
            found = ConcreteModuleType(ModuleFacts(type(part)), part._rekindle_type)
            found.is_compiled = True
        return found
    return type_of_module(part)


def check_initialized(module: torch.nn.Module) -> None:
    """Reject a module that ``nn.Module.__init__`` has not initialized, one made by ``torch.jit``, and one with a lazy
    parameter or buffer, which has no shape yet.

    Raises:
        NotScriptableError: the module is such a module.
    """
    name = type(module).__name__
    if isinstance(module, torch_jit.SCRIPT_MODULE) and not isinstance(module, ScriptModule):
        raise NotScriptableError(
            "the module was compiled by torch.jit, which does not keep what it was made from",
            hint="compile the Python module instead",
        )
    if "_parameters" not in vars(module):
        raise NotScriptableError(
            f"the module '{name}' has not been initialized",
            hint="call super().__init__() at the start of its __init__",
            cause=Cause.INVALID_CLASS,
        )
    for what, table in (("parameter", module._parameters), ("buffer", module._buffers)):
        for key, value in table.items():
            if value is not None and is_lazy(value):
                raise NotScriptableError(
                    f"the {what} '{key}' of the module '{name}' has no shape yet",
                    hint="run the module once before compiling it",
                )


def check_not_parametrized(module: torch.nn.Module) -> None:
    """Reject a module with parametrizations: parameters that are computed when they are read.

    Raises:
        NotScriptableError: the module has parametrizations.
    """
    if is_parametrized(module):
        assert isinstance(module.parametrizations, torch.nn.ModuleDict)
        names = list(module.parametrizations)
        listed = ", ".join(f"'{name}'" for name in names)
        raise NotScriptableError(
            f"the module '{type(module).__name__}' has parametrizations of {listed}, which only Python can compute",
            hint=f"remove them first: torch.nn.utils.parametrize.remove_parametrizations(module, {names[0]!r})",
            cause=Cause.INVALID_CLASS,
        )


def _repeated(module: torch.nn.Module) -> tuple[frozenset[str], frozenset[str]]:
    """Return the repeated paths and the repeated names of children.

    Repeated paths are those below ``module`` that ``named_modules``, ``named_parameters`` and ``named_buffers`` omit,
    since an earlier path has the same module or tensor. Repeated names are those that ``named_children`` omits.
    """
    repeated: set[str] = set()
    seen: set[tuple[str, int]] = {("module", id(module))}

    def visit(part: torch.nn.Module, prefix: str) -> None:
        tables = (("parameter", part._parameters), ("buffer", part._buffers), ("module", part._modules))
        for kind, table in tables:
            for name, value in table.items():
                if value is None:
                    continue
                if (kind, id(value)) in seen:
                    repeated.add(prefix + name)
                    continue
                seen.add((kind, id(value)))
                if isinstance(value, torch.nn.Module):
                    visit(value, f"{prefix}{name}.")

    visit(module, "")
    names: dict[int, str] = {}
    children = {
        name for name, part in module._modules.items() if part is not None and names.setdefault(id(part), name) != name
    }
    return frozenset(repeated), frozenset(children)


def _items(module: torch.nn.Module, container: Container) -> tuple[str, ...]:
    if container in (Container.LIST, Container.DICT):
        return tuple(module._modules)
    if container is Container.PARAMETER_LIST:
        assert isinstance(module, torch.nn.ParameterList)
        return tuple(str(index) for index in range(len(module)))
    if container is Container.PARAMETER_DICT:
        assert isinstance(module, torch.nn.ParameterDict)
        return tuple(module.keys())
    return ()


def _frozen(value: Any) -> object:
    """Return an immutable copy of a constant: a list becomes a tuple."""
    return tuple(map(_frozen, value)) if type(value) in (list, tuple, torch.Size) else value


def _value_of(value: Any) -> Any:
    return value.value if isinstance(value, ATTRIBUTES) else value


def _is_callable(value: object) -> bool:
    return callable(value) and not isinstance(value, (type, enum.Enum))


def _advice(declared: object, value: object) -> str:
    if declared is not None:
        return ""
    if isinstance(value, (list, dict)):
        example = "List[int]" if isinstance(value, list) else "Dict[str, int]"
        return f"; declare its type in the class, for example: {example}"
    return ""
