"""Build native libraries: shared libraries with a C header, which run programs without Python."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch

import rekindle.building.lowering.operators  # noqa: F401 (fills the table of emitters)
from rekindle.building.arguments import may_be_copied
from rekindle.building.cpp_header import CPP_KEYWORDS, cpp_header_text
from rekindle.building.elf import ObjectFile
from rekindle.building.header import Class, Interface, Method, header_text
from rekindle.building.lowering.emitters import EMITTERS, qualified_name
from rekindle.building.lowering.initial_values import write_initializer
from rekindle.building.lowering.parts import LibraryParts, ModuleValue
from rekindle.building.lowering.representation import NotBuildable, c_descriptor_of, descriptor_of
from rekindle.building.lowering.tensors import checks_of
from rekindle.building.lowering.torch_calls import call_torch
from rekindle.building.lowering.writer import Emitter, ProgramWriter
from rekindle.building.lowlevel.module import LowLevelModule
from rekindle.building.manifest import MANIFEST, manifest_text
from rekindle.building.opening import opening_module
from rekindle.building.preparation import PreparedMethod, prepare
from rekindle.building.relocatable import AARCH64, relocatable_object
from rekindle.building.result_classes import classes_of
from rekindle.building.runtime import aten, entry, instances
from rekindle.building.runtime.c_values import free_c_value
from rekindle.building.shared_library import SERIAL_THREADS, ObjectSet, shared_library
from rekindle.building.weights import Weights
from rekindle.codegen.llvm.target import LEVELS, Target, host_target, named_target
from rekindle.codegen.native.arithmetic import DECLARATIONS
from rekindle.errors import RekindleError
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ANY, DEVICE, ClassType, Type
from rekindle.program.function import Function, Method as BoundMethod
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.calls.arguments import binder_of

Program = ScriptModule | Function
Examples = Sequence[Sequence[Any]] | Mapping[str, Sequence[Sequence[Any]]]
Form = Literal["shared", "object"]

_LIBRARIES: Final = ("libm.so.6", "libc.so.6")
_TORCH: Final = ("libtorch_cpu.so", "libc10.so")


@dataclass(frozen=True, slots=True)
class Build:
    """A library that was built: its folder, its name and its methods.

    ``torch_operators`` are the operators that PyTorch runs. A library without any needs the C library only. A library
    that embeds its weights has no file of weights. ``form`` is ``"object"`` for an object that has to be linked.

    Example:
        >>> f = rekindle.script(lambda x: torch.tanh(x) * x)
        >>> built = rekindle.build(f, "gate", [(torch.ones(2, 3),)])
        >>> built.name, built.torch_operators, built.is_freestanding
        ('net', (), True)
    """

    folder: Path
    name: str
    methods: tuple[str, ...]
    torch_operators: tuple[str, ...]
    embeds_weights: bool = False
    form: Form = "shared"

    @property
    def library(self) -> Path:
        return self.folder / (f"lib{self.name}.so" if self.form == "shared" else f"{self.name}.o")

    @property
    def header(self) -> Path:
        return self.folder / f"{self.name}.h"

    @property
    def cpp_header(self) -> Path:
        return self.folder / f"{self.name}.hpp"

    @property
    def weights(self) -> Path | None:
        """The file of weights; None if they are embedded in the library."""
        return None if self.embeds_weights else self.folder / f"{self.name}.weights"

    @property
    def is_freestanding(self) -> bool:
        """Whether the library runs without PyTorch."""
        return not self.torch_operators


def build(
    program: Program,
    path: str | Path,
    examples: Examples = (),
    *,
    dynamic: Mapping[str, Sequence[int]] | None = None,
    name: str = "net",
    cpu: str | Sequence[str] = "native",
    freestanding: bool = False,
    embed_weights: bool = False,
    form: Form = "shared",
) -> Build:
    """Build a shared library that runs ``program`` without Python, and headers for C and C++.

    The dimensions that ``dynamic`` names may have any size. Other dimensions may differ from the examples too, but a
    size of 1 must stay 1, and sizes that are equal in an example must stay equal. For other calls, the library returns
    an error.

    Args:
        program: a compiled function or module.
        path: the folder, which gets ``lib<name>.so``, ``<name>.h``, ``<name>.hpp``, ``<name>.weights`` and
            ``manifest.json``.
        examples: a list of tuples, each with the positional arguments of one call: ``[(x,)]`` for one call with one
            argument. The program is run on each. They determine the dtypes and ranks of tensors, and which kernels are
            needed. For a module, they are calls of ``forward``, or a dict from the names of methods to such lists.
        dynamic: parameters by name, with the dimensions that may have any size. The program is also run on the examples
            with these dimensions repeated and cut.
        name: the prefix of the files and of the C functions.
        cpu: the processor that code is generated for: ``native``, or a level of x86-64 such as ``x86-64-v3``, or
            several levels, such as ``v2,v3,v4``. Opening the library selects the highest that the processor has.
        freestanding: reject a program that needs PyTorch, and compute large products of matrices without it.
        embed_weights: put the weights in the library, which copies them for each instance, instead of in a file, whose
            memory instances and processes share.
        form: ``"shared"``, or ``"object"`` for ``<name>.o`` instead of ``lib<name>.so``, which a linker takes. The
            processor ``aarch64`` has objects alone.

    Raises:
        NotBuildable: the program uses something that libraries do not have. The error has the source location.
        ArgumentError: an example has an argument of the wrong type.
        RekindleError: the examples are not a list of tuples, or have too many or too few arguments; no method has a
            parameter that ``dynamic`` names; ``name`` is not an identifier of C and C++; ``cpu`` or ``form`` is
            unknown, or does not fit the other options; or this machine cannot run code for ``cpu``.
        TypeError: ``program`` is not a compiled module or function.

    Example:
        >>> f = rekindle.script(lambda x: torch.tanh(x) * x)
        >>> built = rekindle.build(f, "gate", [(torch.ones(2, 3),)])
        >>> sorted(path.name for path in built.folder.iterdir())
        ['libnet.so', 'manifest.json', 'net.h', 'net.hpp', 'net.weights']
    """
    if not _is_identifier(name):
        raise RekindleError(f"the name of a library must be an identifier of C and C++, and '{name}' is not one")
    folder = Path(path)
    records = _methods(program, examples)
    for method, _, _ in records:
        if method in _RESERVED or not method.isascii():
            raise NotBuildable(
                f"a method cannot be called '{method}' in a library: its function {name}_{method} is taken"
            )
    cpu = cpu if isinstance(cpu, str) else ",".join(cpu)
    targets = _targets(cpu, form)
    if form == "object" and embed_weights:
        raise RekindleError("an object has no weights: 'embed_weights' is for shared libraries")
    _check_dynamic(dynamic or {}, [record for _, record, _ in records])
    graphs = {
        method: prepare(record, _own(program), _bound(program, record, given), dynamic or {}, freestanding)
        for method, record, given in records
    }
    weights = Weights()
    parts = _written(program, graphs, freestanding, is_whole=form == "object")
    write_initializer(parts, weights, "initialize")
    methods = {method: prepared.graph for method, prepared in graphs.items()}
    classes = _classes_of([record for _, record, _ in records], parts)
    text = _module_text(parts, weights.size, name, methods, embed_weights, has_objects=bool(classes))
    identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")
    text = _with_identity(text, identity)
    uses_torch = parts.uses_torch
    if not uses_torch:  # SLEEF's functions are PyTorch's: kernels of a library without it have others
        targets = {level: target.without_libraries() for level, target in targets.items()}
    sets = [ObjectSet(level, target, [text, *parts.kernels.modules(target)]) for level, target in targets.items()]
    portable = [opening_module(name, tuple(graphs), targets, cpu, has_objects=bool(classes)), SERIAL_THREADS]
    unpack = ("unpack",) if classes else ()
    exports = [f"{name}_{each}" for each in ("open", "close", "error", "free", *unpack, *graphs)]
    if form == "object":
        image = relocatable_object(sets[0].modules, portable, exports, sets[0].target)
    else:
        image = shared_library(
            sets,
            portable,
            exports,
            [_embedded(weights.content(identity))] if embed_weights else [],
            soname=f"lib{name}.so",
            needed=(*(_TORCH if uses_torch else ()), *_LIBRARIES),
            runpath=str(Path(torch.__file__).parent / "lib") if uses_torch else "",
        )
    result = Build(folder, name, tuple(graphs), tuple(sorted(uses_torch)), embed_weights, form)
    signatures = [_signature(method, record, len(_own(program))) for method, record, _ in records]
    content = None if embed_weights else weights.content(identity)
    cpus = [target.cpu for target in targets.values()]
    _write(result, image, content, cpus, Interface(signatures, [_attributes_of(each) for each in classes]))
    return result


_RESERVED: Final = frozenset(
    {
        *("open", "close", "error", "free", "unpack", "instance", "value", "kind", "code"),
        *("int", "float", "bool", "tensor", "string", "list", "none", "complex", "imaginary"),
    }
)
"""Suffixes of a library's name that its header uses itself."""

_KEYWORDS: Final = frozenset(
    {
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    }
)
"""The keywords of C."""


def _is_identifier(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name not in _KEYWORDS | CPP_KEYWORDS


def _targets(cpu: str, form: Form) -> dict[str, Target]:
    """Return the targets of a library by the suffixes of their symbols, the lowest level first.

    Raises:
        RekindleError: the form or a processor is unknown, the form does not support the processors, or this machine
            cannot run code for one.
    """
    names = [f"x86-64-{each}" if each in ("v2", "v3", "v4") else each for each in cpu.split(",")]
    if form not in ("shared", "object"):
        raise RekindleError(f"the form of a library is 'shared' or 'object', not '{form}'")
    if form == "object" and len(names) > 1:
        raise RekindleError("an object is for one processor: several levels are for shared libraries")
    if names == ["aarch64"]:
        if form != "object":
            raise RekindleError("the linker knows x86-64: a library for aarch64 is of the form 'object'")
        return {"": AARCH64}
    if len(names) == 1:
        return {"": host_target() if names[0] == "native" else named_target(names[0])}
    if len(set(names)) < len(names) or not set(names) <= LEVELS.keys():
        raise RekindleError(
            f"several levels of a library are of {', '.join(LEVELS)}, each once, not {', '.join(names)}"
        )
    return {f".{level}": named_target(level) for level in LEVELS if level in names}


def _with_identity(text: str, identity: int) -> str:
    head, _, tail = text.rpartition("i64 IDENTITY,")  # the name of the library may contain the word
    return f"{head}i64 {identity},{tail}"


def _methods(program: Program, examples: Examples) -> list[tuple[str, GraphFunction, Sequence[Sequence[Any]]]]:
    """Return the methods to build: the name, the function and the examples of each.

    Raises:
        TypeError: the program is not a compiled module or function.
        RekindleError: the examples are not of the documented form, or a method does not exist.
        NotBuildable: ``forward`` is built, and the module has hooks.
    """
    if not isinstance(program, (ScriptModule, Function)):
        raise TypeError(
            f"build takes a compiled module or function, not {type(program).__name__}; compile it first, with "
            "rekindle.script or rekindle.trace, and give the module for its methods"
        )
    if isinstance(program, ScriptModule):
        by_method = examples if isinstance(examples, Mapping) else {"forward": examples}
        found = []
        for method, given in by_method.items():
            bound = getattr(program, method, None)
            if not isinstance(bound, BoundMethod):
                raise RekindleError(f"the module has no compiled method '{method}'")
            if method == "forward" and (program.script_type.hooks or program.script_type.pre_hooks):
                raise NotBuildable("the module has hooks, which run where Python calls it, and a library calls forward")
            found.append((method, bound._record, given))
        return found
    if isinstance(examples, Mapping):
        raise RekindleError("the examples of a function are a sequence of tuples; those of methods are a dict")
    return [("call", program._record, examples)]


def _check_dynamic(dynamic: Mapping[str, Sequence[int]], records: Sequence[GraphFunction]) -> None:
    known = {argument.name for record in records for argument in record.schema.arguments}
    for name in dynamic:
        if name not in known:
            raise RekindleError(f"no method has a parameter '{name}' whose sizes could be dynamic")


def _own(program: Program) -> list[Any]:
    """Return the arguments that callers do not pass: the module, if ``program`` is one; else none."""
    return [program] if isinstance(program, ScriptModule) else []


def _bound(program: Program, record: GraphFunction, examples: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return the complete arguments of each example: the module first, and the defaults of omitted arguments.

    Raises:
        RekindleError: an example is not a tuple, or has too many or too few arguments.
        ArgumentError: an example has an argument of the wrong type.
    """
    found = []
    own = _own(program)
    for example in examples:
        if not isinstance(example, tuple | list):
            raise RekindleError(
                f"an example is a tuple of arguments, not a {type(example).__name__}; examples are a list: [(x,)]"
            )
        given = [*own, *example]
        for argument in record.schema.arguments[len(given) :]:
            if not argument.has_default:
                raise RekindleError(f"an example of '{record.basename}' lacks the argument '{argument.name}'")
            given.append(argument.default)
        if len(given) > len(record.schema.arguments):
            raise RekindleError(f"an example of '{record.basename}' has {len(given)} arguments, which are too many")
        binder_of(record).bind(given, {})
        found.append(given)
    return found


def _signature(method: str, record: GraphFunction, is_method: int) -> Method:
    """Return the description of a method for the headers. Trailing default values are included if C and C++ can
    express them."""
    arguments = record.schema.arguments[is_method:]
    parameters = ", ".join(f"{each.name}: {each.type.annotation}" for each in arguments)
    returns = record.schema.returns[0].type.annotation if record.schema.returns else "None"
    classes = classes_of(record.schema.returns[0].type) if record.schema.returns else None
    defaults: list[object] = []
    for each in reversed(arguments):
        if not each.has_default or not isinstance(each.default, bool | int | float | str | None):
            break
        defaults.insert(0, each.default)
    return Method(method, f"{method}({parameters}) -> {returns}", len(arguments), tuple(defaults), classes)


def _attributes_of(type: ClassType) -> Class:
    """Return the description of a class for the headers."""
    return Class(type.annotation, {name: each.type.annotation for name, each in type.attributes.items()})


def _emitter(node: Node) -> Emitter:
    """Return the function that lowers a node. Without one, PyTorch's operator is called."""
    return EMITTERS.get(qualified_name(node)) or EMITTERS.get(node.kind) or call_torch


def _written(
    program: Program, graphs: Mapping[str, PreparedMethod], freestanding: bool, *, is_whole: bool
) -> LibraryParts:
    """Lower all methods to LLVM IR; return the parts of the library. If its module ``is_whole``, the module also holds
    the runtime.

    Raises:
        NotBuildable: an operator cannot be lowered, or a ``freestanding`` library would need PyTorch.
    """
    parts = LibraryParts(LowLevelModule(is_whole))
    for method, prepared in graphs.items():
        graph = prepared.graph
        parts.recipes.update(prepared.recipes)
        w = ProgramWriter(parts, _emitter)
        if isinstance(program, ScriptModule):
            w.modules[graph.inputs[0]] = ModuleValue(program, "")
        w.write(graph, f"method.{method}")
    if freestanding and parts.uses_torch:
        raise NotBuildable(f"the program needs PyTorch for {', '.join(sorted(parts.uses_torch))}")
    return parts


_ENTRY: Final = """
define i32 @{name}_{method}(ptr %instance, ptr %arguments, i64 %count, ptr %result) {{
  %code = call i64 @call_method(ptr %instance, ptr @method.{method}, ptr {parameters}, ptr {checks}, ptr {returns},
                                ptr %arguments, i64 %count, ptr %result)
  %short = trunc i64 %code to i32
  ret i32 %short
}}
"""

_OPEN: Final = """
define i32 @open.library(ptr %weights, ptr %out) {{
  %instance = call ptr @new_instance(ptr {descriptors}, i64 {count})
  store ptr %instance, ptr %out
  %none = icmp eq ptr %instance, null
  br i1 %none, label %memory, label %map
memory:
  ret i32 9
map:
  %mapped = call i1 @{opener}(ptr %instance, ptr %weights, {embedded}i64 IDENTITY, i64 {bytes})
  br i1 %mapped, label %fill, label %failed
fill:
  call void @initialize(ptr %instance)
  ret i32 0
failed:
  %code = load i64, ptr %instance
  %short = trunc i64 %code to i32
  ret i32 %short
}}

define void @{name}_close(ptr %instance) {{
  call void @close_instance(ptr %instance)
  ret void
}}

define void @{name}_free(ptr %value) {{
  %none = icmp eq ptr %value, null
  br i1 %none, label %done, label %free
free:
  call void @free_c_value(ptr %value)
  br label %done
done:
  ret void
}}
"""

_UNPACK: Final = """
define i32 @{name}_unpack(ptr %instance, ptr %object, ptr %result) {{
  %code = call i64 @unpack_object(ptr %instance, ptr %object, ptr %result)
  %short = trunc i64 %code to i32
  ret i32 %short
}}
"""

_RELEASE_HANDLE: Final = """
define hidden void @release_handle(ptr %handle) {{
  {body}
  ret void
}}
"""


def _embedded(content: bytes) -> ObjectFile:
    """Return an object file with the weights as constant data, which instances copy.

    Raises:
        NotBuildable: ``content`` exceeds 1 GiB.
    """
    if len(content) > _MAX_EMBEDDED:
        raise NotBuildable(f"{len(content):,} bytes of weights cannot be embedded: at most {_MAX_EMBEDDED:,} are")
    return ObjectFile.of_data(_EMBEDDED, content)


_EMBEDDED: Final = "embedded.weights"
_MAX_EMBEDDED: Final = 1 << 30
"""Code refers to data that is up to 2 GiB away."""


def _module_text(
    parts: LibraryParts,
    bytes: int,
    name: str,
    methods: Mapping[str, Graph],
    embeds_weights: bool,
    *,
    has_objects: bool,
) -> str:
    """Return the LLVM module of everything but the kernels. ``bytes`` is the size of the weights. ``has_objects``:
    whether instances of classes may be arguments or results.

    Raises:
        NotBuildable: a method has a parameter, a result or state that the C API cannot represent.
    """
    opener = instances.open_embedded if embeds_weights else instances.map_weights
    for function in (entry.call_method, instances.new_instance, opener, instances.close_instance):
        parts.runtime.add(function)
    parts.runtime.add(free_c_value)
    exported = []
    for method, graph in methods.items():
        inputs = [value for value in graph.inputs if not _is_module(value)]
        parameters = "".join(c_descriptor_of(value.type) for value in inputs)
        checks = [number for value in inputs for number in (*checks_of(value.type), int(may_be_copied(graph, value)))]
        returns = descriptor_of(graph.outputs[0].type) if graph.outputs else "n"
        types = [value.type for value in (*inputs, *graph.outputs)]
        if any(map(_holds_device, types)):
            raise NotBuildable(f"'{method}' takes or returns a device, which C has no form of")
        exported.append(
            _ENTRY.format(
                name=name,
                method=method,
                parameters=parts.constants.bytes(f"({parameters})".encode()),
                checks=parts.constants.words(checks or [0]),
                returns=parts.constants.bytes(returns.encode()),
            )
        )
    if embeds_weights:
        exported.append(f"@{_EMBEDDED} = external constant i8\n")
    known = parts.attributes.known
    each = ", ".join(f"ptr {parts.constants.descriptor(slot.type)}" for slot in known)
    descriptors = "@descriptors" if known else "null"
    if known:
        exported.append(f"@descriptors = internal constant [{len(known)} x ptr] [{each}]\n")
    exported.append(
        _OPEN.format(
            name=name,
            descriptors=descriptors,
            count=len(known),
            bytes=bytes,
            opener=opener.__name__,
            embedded=f"ptr @{_EMBEDDED}, " if embeds_weights else "",
        )
    )
    if has_objects:
        parts.runtime.add(entry.unpack_object)
        exported.append(_UNPACK.format(name=name))
    if parts.uses_torch:
        parts.runtime.add(aten.aoti_torch_delete_tensor_object)
        body = "call i32 @aoti_torch_delete_tensor_object(ptr %handle)"
    else:
        body = ""
    parts.runtime.declarations.pop("release_handle", None)
    exported.append(_RELEASE_HANDLE.format(body=body))
    own = [line for line in DECLARATIONS.splitlines() if _declared(line) not in parts.runtime.declarations]
    return "\n".join(
        [
            *own,
            str(parts.runtime),
            *parts.constants.definitions,
            *parts.definitions,
            *exported,
            '!0 = !{!"branch_weights", i32 1000, i32 1}',
            '!1 = !{!"branch_weights", i32 1, i32 1000}',
        ]
    )


def _classes_of(records: Sequence[GraphFunction], parts: LibraryParts) -> list[ClassType]:
    """Return the classes whose instances may be arguments or results of methods, or attributes of these."""
    found: dict[ClassType, None] = {}
    pending: list[Type] = [
        each.type for record in records for each in (*record.schema.arguments, *record.schema.returns)
    ]
    while pending:
        type = pending.pop()
        if isinstance(type, ClassType):
            if type.is_module or type in found:
                continue
            found[type] = None
            pending += [each.type for each in type.attributes.values()]
        elif type == ANY:
            pending += parts.classes
        pending += type.contained
    return sorted(found, key=lambda type: type.name)


def _holds_device(type: Type) -> bool:
    return type == DEVICE or any(map(_holds_device, type.contained))


def _declared(line: str) -> str:
    """Return the name that a ``declare`` line of LLVM IR declares."""
    return line.partition("@")[2].partition("(")[0]


def _is_module(value: Any) -> bool:
    return getattr(value.type, "is_module", False)


def _write(result: Build, image: bytes, weights: bytes | None, cpus: Sequence[str], interface: Interface) -> None:
    """Write the files of a library."""
    result.folder.mkdir(parents=True, exist_ok=True)
    contents = {
        result.library: image,
        result.header: header_text(result.name, interface).encode(),
        result.cpp_header: cpp_header_text(result.name, interface).encode(),
    }
    if weights is not None and result.weights is not None:
        contents[result.weights] = weights
    for path, data in contents.items():
        _replace(path, data, 0o755 if path == result.library else 0o644)
    manifest = {
        "format": 1,
        "name": result.name,
        "methods": {
            each.name: {
                "signature": each.signature,
                "parameters": each.parameters,
                "defaults": list(each.defaults),
                "result": each.result,
            }
            for each in interface.methods
        },
        "classes": {each.name: list(each.attributes) for each in interface.classes},
        "cpu": list(cpus),
        "torch": torch.__version__ if result.torch_operators else None,
        "torch_operators": list(result.torch_operators),
        "files": {
            path.name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for path, data in contents.items()
        },
    }
    _replace(result.folder / MANIFEST, manifest_text(manifest).encode())


def _replace(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write ``content`` to a temporary file, and rename that to ``path``, since a process may have the old file
    mapped into memory."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_bytes(content)
    written.chmod(mode)
    written.replace(path)
