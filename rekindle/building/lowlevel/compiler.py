"""Compiler of the low-level language: translate functions to LLVM IR.

Local variables are stack slots, which LLVM's ``sroa`` turns into registers. Input and output of a small function::

    @native                                     define internal i64 @list_length(ptr %items.arg) {
    def list_length(items: List) -> int:          …
        return items.length                       %v2 = getelementptr i64, ptr %v1, i64 2
                                                  %v3 = load i64, ptr %v2
                                                  ret i64 %v3
                                                }
"""

from __future__ import annotations

import ast
import enum
import inspect
import struct
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from rekindle.building.lowlevel import types
from rekindle.building.lowlevel.types import Address, Array, Byte, Float32, Int8, Int16, Int32, Struct
from rekindle.errors import InternalError

_BOXED: Final[Mapping[Any, tuple[str, str, str]]] = {
    Byte: ("i8", "zext i8 {} to i64", "trunc i64 {} to i8"),
    Int8: ("i8", "sext i8 {} to i64", "trunc i64 {} to i8"),
    Int16: ("i16", "sext i16 {} to i64", "trunc i64 {} to i16"),
    Int32: ("i32", "sext i32 {} to i64", "trunc i64 {} to i32"),
    Float32: ("float", "fpext float {} to double", "fptrunc double {} to float"),
}
"""Types whose form in memory differs from that in registers: the LLVM type, and formats of the conversions after a
load and before a store."""


class Operand(NamedTuple):
    """A register or a constant of LLVM IR, and its Python type."""

    text: str
    type: Any

    @property
    def llvm(self) -> str:
        return register_type(self.type)


def register_type(type: Any) -> str:
    """Return the LLVM type of a register that holds a value of a Python type."""
    if type in (int, Byte, Int8, Int16, Int32):
        return "i64"
    if type in (float, Float32):
        return "double"
    if type is bool:
        return "i1"
    if type is None or type is NoneType:
        return "void"
    return "ptr"


def parameter_type(type: Any) -> str:
    """Return the LLVM type of a parameter or result of a C function: as in registers, except for ``Int32``."""
    return "i32" if type is Int32 else register_type(type)


NoneType: Final = type(None)
_MAX_INLINED: Final = 10
"""Maximum number of code lines of a function that LLVM may inline, the line of its head included."""


def _plain(annotation: Any) -> Any:
    """Return a type without ``| None``: every pointer may be null."""
    parts = [each for each in get_args(annotation) if each is not NoneType]
    is_optional = len(parts) < len(get_args(annotation)) and get_origin(annotation) is not Array
    return _plain(parts[0]) if is_optional else annotation


@cache
def fields_of(type: Any) -> Mapping[str, Any]:
    """Return the fields of a :class:`Struct` with their types, in the order of memory."""
    found: dict[str, Any] = {}
    for each in reversed(type.__mro__):
        hints = get_type_hints(each)
        found |= {name: _plain(hints[name]) for name in inspect.get_annotations(each)}
    return found


def _is_struct(type: Any) -> bool:
    return inspect.isclass(type) and issubclass(type, Struct)


@cache
def field_index(type: Any, name: str) -> int:
    """Return the index of the 64-bit word of a structure that holds a field."""
    return list(fields_of(type)).index(name)


class _Signature(NamedTuple):
    parameters: tuple[Any, ...]
    result: Any
    is_variadic: bool


@cache
def _signature(function: Callable[..., Any]) -> _Signature:
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return _Signature(
        tuple(_plain(hints[each.name]) for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD),
        _plain(hints["return"]),
        any(each.kind is each.VAR_POSITIONAL for each in parameters),
    )


@cache
def parameter_types(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """Return the LLVM types of the parameters and of the result of a function."""
    signature = _signature(function)
    return tuple(map(register_type, signature.parameters)), register_type(signature.result)


@dataclass(frozen=True, slots=True)
class Translation:
    """A function in LLVM IR. ``head`` is the part before ``{``: the result, the name, parameters and attributes."""

    head: str
    body: str
    functions: tuple[Callable[..., Any], ...]
    """The functions of the low-level language that it refers to."""
    declarations: Mapping[str, str]
    """Declarations of C functions and of LLVM's intrinsics by name."""
    texts: Mapping[str, str]
    """The names of constant strings, by their text."""
    tables: Mapping[str, Callable[[], bytes]]
    """The functions that compute constant tables, by the names of the tables."""


@cache
def translated(function: Callable[..., Any]) -> Translation:
    """Translate one function to LLVM IR.

    Raises:
        InternalError: the function uses something that the low-level language does not have.
    """
    return _FunctionCompiler(function).translation()


def may_be_inlined(function: Callable[..., Any]) -> bool:
    """Return whether LLVM may inline a function: it is small, and not marked as cold. A program calls the runtime in
    thousands of places, so copies of a larger function are not worth their size."""
    if hasattr(function, "__cold__"):
        return False
    return len({line for *_, line in function.__code__.co_lines()}) <= _MAX_INLINED


def attributes_of(function: Callable[..., Any]) -> str:
    """Return the LLVM attributes of a function, each after a space."""
    is_cold = hasattr(function, "__cold__")
    return " noinline cold" if is_cold else "" if may_be_inlined(function) else " noinline"


def declaration_of(function: Callable[..., Any]) -> str:
    """Return the declaration of a function of the low-level language, without the word ``declare``."""
    parameters, result = parameter_types(function)
    return f"{result} @{function.__name__}({', '.join(parameters)}){attributes_of(function)}"


def table_symbol(make: Callable[[], bytes]) -> str:
    """Return the symbol of the constant table that a function computes."""
    return f"runtime.table.{make.__name__}"


def extern_declaration(function: Callable[..., Any]) -> str:
    """Return the declaration of a C function."""
    signature = _signature(function)
    listed = ", ".join([*map(parameter_type, signature.parameters), *(["..."] if signature.is_variadic else [])])
    result = parameter_type(signature.result)
    return f"declare {result} @{function.__name__}({listed}) nonlazybind"


def c_string(data: bytes) -> str:
    """Return a constant in LLVM IR that consists of ``data`` and a zero byte."""
    text = "".join(chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\{each:02X}" for each in data)
    return f'[{len(data) + 1} x i8] c"{text}\\00"'


_ARITHMETIC: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_REAL: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[str, str]]] = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Is: ("eq", "oeq"),
    ast.IsNot: ("ne", "une"),
}


class _FunctionCompiler:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.functions: dict[Callable[..., Any], None] = {}
        self.declarations: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.tables: dict[str, Callable[[], bytes]] = {}
        self.globals: Mapping[str, Any] = function.__globals__
        self.signature = _signature(function)
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.locals: dict[str, Any] = {}
        self.loops: list[tuple[str, str]] = []
        """The labels that ``continue`` and ``break`` jump to."""
        self.count = 0
        self.is_open = True
        """Whether the current block has no end yet."""

    def translation(self) -> Translation:
        source = textwrap.dedent(inspect.getsource(self.function))
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.FunctionDef)
        parameters = []
        for argument, type in zip(tree.args.args, self.signature.parameters, strict=True):
            self._declare(argument.arg, type)
            parameters.append(f"{register_type(type)} %{argument.arg}.arg")
            self.emit(f"store {register_type(type)} %{argument.arg}.arg, ptr %{argument.arg}.slot")
        self._body(tree.body)
        result = register_type(self.signature.result)
        if self.is_open:
            self.emit("ret void" if result == "void" else "unreachable")
        return Translation(
            f"{result} @{tree.name}({', '.join(parameters)}){attributes_of(self.function)}",
            "\n".join(["start:", *self.slots, *self.lines]),
            tuple(self.functions),
            self.declarations,
            self.texts,
            self.tables,
        )

    # ---------------------------------------------------------------------------------------------------------- lines

    def emit(self, line: str) -> None:
        if self.is_open:
            self.lines.append(f"  {line}")

    def value(self, expression: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.emit(f"{name} = {expression}")
        return name

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.is_open = True

    def end(self, line: str) -> None:
        self.emit(line)
        self.is_open = False

    def _declare(self, name: str, type: Any) -> None:
        if name not in self.locals:
            self.locals[name] = type
            self.slots.append(f"  %{name}.slot = alloca {register_type(type)}, align 8")

    def fail(self, node: ast.AST, reason: str) -> InternalError:
        return InternalError(f"{self.function.__module__}.{self.function.__name__}: {ast.unparse(node)}: {reason}")

    # ----------------------------------------------------------------------------------------------------- statements

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for each in statements:
            method = getattr(self, f"_{type(each).__name__.lower()}", None)
            if method is None:
                raise self.fail(each, "no statement of the low-level language")
            method(each)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.expression(node.value)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self.end("ret void")
            return
        result = self.converted(self.expression(node.value), self.signature.result, node)
        self.end(f"ret {result.llvm} {result.text}")

    def _assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        self._store(target, self.expression(node.value))

    def _annassign(self, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name)
        type = _plain(eval(ast.unparse(node.annotation), dict(self.globals)))  # noqa: S307 (our own source)
        self._declare(node.target.id, type)
        if node.value is not None:
            self._store(node.target, self.expression(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        self._store(node.target, self._binary(node, node.op, self.expression(target), self.expression(node.value)))

    def _store(self, target: ast.expr, given: Operand) -> None:
        if isinstance(target, ast.Name):
            self._declare(target.id, int if given.type in _BOXED and given.llvm == "i64" else given.type)
            value = self.converted(given, self.locals[target.id], target)
            self.emit(f"store {value.llvm} {value.text}, ptr %{target.id}.slot")
            return
        place, type = self._place(target)
        value = self.converted(given, type, target)
        if type in _BOXED:
            memory, _, write = _BOXED[type]
            self.emit(f"store {memory} {self.value(write.format(value.text))}, ptr {place}, align 1")
        elif type is bool:
            raise self.fail(target, "bools are kept as ints")
        else:
            self.emit(f"store {value.llvm} {value.text}, ptr {place}, align 8")

    def _if(self, node: ast.If) -> None:
        yes, no, after = self.label("then"), self.label("else"), self.label("after")
        self.end(f"br i1 {self.condition(node.test)}, label %{yes}, label %{no}")
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            self._body(body)
            self.end(f"br label %{after}")
        self.begin(after)

    def _while(self, node: ast.While) -> None:
        head, body, after = self.label("while"), self.label("body"), self.label("done")
        self.end(f"br label %{head}")
        self.begin(head)
        self.end(f"br i1 {self.condition(node.test)}, label %{body}, label %{after}")
        self._loop_body(body, node.body, head, after)
        self.end(f"br label %{head}")
        self.begin(after)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self.expression(each) for each in node.iter.args]
        low, high = bounds if len(bounds) == 2 else (Operand("0", int), bounds[0])
        self._store(node.target, low)
        head, body, step, after = (self.label(stem) for stem in ("for", "body", "step", "done"))
        slot = f"%{node.target.id}.slot"
        self.end(f"br label %{head}")
        self.begin(head)
        index = self.value(f"load i64, ptr {slot}")
        self.end(f"br i1 {self.value(f'icmp slt i64 {index}, {high.text}')}, label %{body}, label %{after}")
        self._loop_body(body, node.body, step, after)
        self.end(f"br label %{step}")
        self.begin(step)
        following = self.value(f"add i64 {self.value(f'load i64, ptr {slot}')}, 1")
        self.emit(f"store i64 {following}, ptr {slot}")
        self.end(f"br label %{head}")
        self.begin(after)

    def _loop_body(self, label: str, body: Sequence[ast.stmt], again: str, after: str) -> None:
        self.begin(label)
        self.loops.append((again, after))
        self._body(body)
        self.loops.pop()

    def _break(self, node: ast.Break) -> None:
        self.end(f"br label %{self.loops[-1][1]}")

    def _continue(self, node: ast.Continue) -> None:
        self.end(f"br label %{self.loops[-1][0]}")

    # ---------------------------------------------------------------------------------------------------- expressions

    def condition(self, node: ast.expr) -> str:
        found = self.expression(node)
        if found.type is not bool:
            raise self.fail(node, "a condition is a bool")
        return found.text

    def expression(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant(value):
                return self._constant(node, value)
            case ast.Name(id=name):
                if name in self.locals:
                    type = self.locals[name]
                    return Operand(self.value(f"load {register_type(type)}, ptr %{name}.slot"), type)
                return self._global(node, self._resolve(node))
            case ast.Attribute():
                found = self._resolve(node)
                return self._global(node, found) if found is not None else self._load(node)
            case ast.Subscript():
                return self._load(node)
            case ast.BinOp(left, operation, right):
                return self._binary(node, operation, self.expression(left), self.expression(right))
            case ast.UnaryOp(ast.Not(), operand):
                return Operand(self.value(f"xor i1 {self.condition(operand)}, true"), bool)
            case ast.UnaryOp(ast.USub(), operand):
                given = self.expression(operand)
                text = f"fneg double {given.text}" if given.llvm == "double" else f"sub i64 0, {given.text}"
                return Operand(self.value(text), given.type)
            case ast.BoolOp(operation, values):
                return self._short_circuit(isinstance(operation, ast.And), values)
            case ast.Compare(left, operations, rights):
                return self._comparison(node, left, operations, rights)
            case ast.IfExp(test, body, orelse):
                return self._choice(test, body, orelse)
            case ast.Call():
                return self._call(node)
            case _:
                raise self.fail(node, "no expression of the low-level language")

    def _constant(self, node: ast.AST, value: object) -> Operand:
        match value:
            case None:
                return Operand("null", Address)
            case bool():
                return Operand("true" if value else "false", bool)
            case int():
                return Operand(str(value), int)
            case float():
                return Operand(f"0x{struct.pack('>d', value).hex().upper()}", float)
            case _:
                raise self.fail(node, "no constant of the low-level language")

    def _resolve(self, node: ast.expr) -> Any:
        """Return the global that a dotted name refers to; None if its first component is a local variable."""
        match node:
            case ast.Name(id=name):
                if name in self.locals:
                    return None
                return self.globals[name] if name in self.globals else __builtins__[name]  # type: ignore[index]
            case ast.Attribute(value, name):
                owner = self._resolve(value)
                return None if owner is None else getattr(owner, name)
            case _:
                return None

    def _global(self, node: ast.AST, found: Any) -> Operand:
        if isinstance(found, enum.IntEnum):
            return Operand(str(int(found)), int)
        if callable(found) and hasattr(found, "__native__"):
            self.functions[found] = None
            return Operand(f"@{found.__name__}", Address)
        return self._constant(node, found)

    def _place(self, node: ast.expr) -> tuple[str, Any]:
        """Emit the address of a field or an element; return it, and the type of the field or element.

        Raises:
            InternalError: the operand has no such field, or no elements.
        """
        if isinstance(node, ast.Attribute):
            owner = self.expression(node.value)
            if not _is_struct(owner.type):
                raise self.fail(node, f"{owner.type} has no fields")
            fields = fields_of(owner.type)
            if node.attr not in fields:
                raise self.fail(node, f"{owner.type.__name__} has no such field")
            index = list(fields).index(node.attr)
            return self.value(f"getelementptr i64, ptr {owner.text}, i64 {index}"), fields[node.attr]
        assert isinstance(node, ast.Subscript)
        owner, index_value = self.expression(node.value), self.expression(node.slice)
        if get_origin(owner.type) is not Array:
            raise self.fail(node, f"{owner.type} has no elements")
        (element,) = get_args(owner.type)
        element = _plain(element)
        memory = _BOXED[element][0] if element in _BOXED else register_type(element)
        return self.value(f"getelementptr {memory}, ptr {owner.text}, i64 {index_value.text}"), element

    def _load(self, node: ast.expr) -> Operand:
        place, type = self._place(node)
        if type not in _BOXED:
            return Operand(self.value(f"load {register_type(type)}, ptr {place}, align 8"), type)
        memory, read, _ = _BOXED[type]
        loaded = self.value(f"load {memory}, ptr {place}, align 1")
        return Operand(self.value(read.format(loaded)), float if type is Float32 else int)

    def _binary(self, node: ast.AST, operation: ast.operator, left: Operand, right: Operand) -> Operand:
        if left.llvm == "double" and right.llvm == "double" and type(operation) in _REAL:
            return Operand(self.value(f"{_REAL[type(operation)]} double {left.text}, {right.text}"), float)
        if left.llvm == "i1" and right.llvm == "i1" and isinstance(operation, ast.BitAnd | ast.BitOr | ast.BitXor):
            return Operand(self.value(f"{_ARITHMETIC[type(operation)]} i1 {left.text}, {right.text}"), bool)
        if left.llvm != "i64" or right.llvm != "i64":
            raise self.fail(node, f"no operator of {left.type} and {right.type}")
        if isinstance(operation, ast.FloorDiv | ast.Mod):
            return Operand(self._rounded_down(isinstance(operation, ast.Mod), left.text, right.text), int)
        if type(operation) not in _ARITHMETIC:
            raise self.fail(node, "no operator of ints")
        return Operand(self.value(f"{_ARITHMETIC[type(operation)]} i64 {left.text}, {right.text}"), int)

    def _rounded_down(self, is_modulo: bool, a: str, b: str) -> str:
        rest = self.value(f"srem i64 {a}, {b}")
        differs = self.value(f"icmp slt i64 {self.value(f'xor i64 {rest}, {b}')}, 0")
        below = self.value(f"and i1 {differs}, {self.value(f'icmp ne i64 {rest}, 0')}")
        if is_modulo:
            return self.value(f"select i1 {below}, i64 {self.value(f'add i64 {rest}, {b}')}, i64 {rest}")
        return self.value(f"sub i64 {self.value(f'sdiv i64 {a}, {b}')}, {self.value(f'zext i1 {below} to i64')}")

    def _comparison(
        self, node: ast.AST, left: ast.expr, operations: Sequence[ast.cmpop], rights: Sequence[ast.expr]
    ) -> Operand:
        a, joined = self.expression(left), ""
        for operation, right in zip(operations, rights, strict=True):
            b = self.expression(right)
            if a.llvm != b.llvm:
                raise self.fail(node, f"{a.type} and {b.type} cannot be compared")
            of_ints, of_floats = _COMPARISONS[type(operation)]
            is_float = a.llvm == "double"
            text = f"fcmp {of_floats}" if is_float else f"icmp {of_ints}"
            found = self.value(f"{text} {a.llvm} {a.text}, {b.text}")
            joined = self.value(f"and i1 {joined}, {found}") if joined else found
            a = b
        return Operand(joined, bool)

    def _merged(self, type: Any, compute: Callable[[str], None]) -> Operand:
        """Run ``compute`` with a new slot of the frame; return the value that its code stores in the slot."""
        self.count += 1
        slot = f"%merge{self.count}"
        kind = register_type(type)
        self.slots.append(f"  {slot} = alloca {kind}, align 8")
        compute(slot)
        return Operand(self.value(f"load {kind}, ptr {slot}"), type)

    def _short_circuit(self, is_and: bool, values: Sequence[ast.expr]) -> Operand:
        after = self.label("decided")

        def compute(slot: str) -> None:
            for index, each in enumerate(values):
                found = self.condition(each)
                self.emit(f"store i1 {found}, ptr {slot}")
                if index + 1 < len(values):
                    more = self.label("more")
                    yes, no = (more, after) if is_and else (after, more)
                    self.end(f"br i1 {found}, label %{yes}, label %{no}")
                    self.begin(more)
            self.end(f"br label %{after}")
            self.begin(after)

        return self._merged(bool, compute)

    def _choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Operand:
        yes, no, after = self.label("yes"), self.label("no"), self.label("chosen")
        self.end(f"br i1 {self.condition(test)}, label %{yes}, label %{no}")
        self.begin(yes)
        first = self.expression(body)

        def compute(slot: str) -> None:
            self.emit(f"store {first.llvm} {first.text}, ptr {slot}")
            self.end(f"br label %{after}")
            self.begin(no)
            second = self.converted(self.expression(orelse), first.type, orelse)
            self.emit(f"store {second.llvm} {second.text}, ptr {slot}")
            self.end(f"br label %{after}")
            self.begin(after)

        return self._merged(first.type, compute)

    # ---------------------------------------------------------------------------------------------------------- calls

    def _call(self, node: ast.Call) -> Operand:
        function = self._resolve(node.func)
        builtin = getattr(self, f"_built_in_{getattr(function, '__name__', '')}", None)
        if builtin is not None and (function.__module__ in (types.__name__, "builtins", "typing")):
            result: Operand = builtin(node)
            return result
        signature = _signature(function)
        given = [self.expression(each) for each in node.args]
        fixed = [self.converted(value, type, node) for value, type in zip(given, signature.parameters, strict=False)]
        name, result_type = function.__name__, parameter_type(signature.result)
        if hasattr(function, "__extern__"):
            kinds = [parameter_type(each) for each in signature.parameters]
            listed = ", ".join([*kinds, *(["..."] if signature.is_variadic else [])])
            self.declarations[name] = extern_declaration(function)
            callee = f"{result_type} ({listed})" if signature.is_variadic else result_type
        else:
            self.functions[function] = None
            kinds, callee = [each.llvm for each in fixed], result_type
        arguments = [
            f"i32 {self.value(f'trunc i64 {each.text} to i32')}" if kind == "i32" else f"{kind} {each.text}"
            for each, kind in zip(fixed, kinds, strict=True)
        ]
        arguments += [f"{each.llvm} {each.text}" for each in given[len(fixed) :]]
        text = f"call {callee} @{name}({', '.join(arguments)})"
        if result_type == "void":
            self.emit(text)
            return Operand("", None)
        if result_type == "i32":
            return Operand(self.value(f"sext i32 {self.value(text)} to i64"), int)
        return Operand(self.value(text), signature.result)

    def converted(self, given: Operand, wanted: Any, node: ast.AST) -> Operand:
        """Return ``given`` as an operand of the type ``wanted``. Any pointer may be used as any other.

        Raises:
            InternalError: the types have different registers.
        """
        if given.llvm != register_type(wanted):
            raise self.fail(node, f"{given.type} is not a {wanted}")
        return Operand(given.text, wanted)

    def _typed(self, node: ast.expr) -> Any:
        text = node.value if isinstance(node, ast.Constant) else ast.unparse(node)
        return _plain(eval(str(text), dict(self.globals)))  # noqa: S307 (our own source)

    def _built_in_cast(self, node: ast.Call) -> Operand:
        return Operand(self.expression(node.args[1]).text, self._typed(node.args[0]))

    def _built_in_view(self, node: ast.Call) -> Operand:
        word = self.expression(node.args[1])
        return Operand(self.value(f"inttoptr i64 {word.text} to ptr"), self._typed(node.args[0]))

    def _built_in_offset(self, node: ast.Call) -> Operand:
        base, count = map(self.expression, node.args)
        return Operand(self.value(f"getelementptr i8, ptr {base.text}, i64 {count.text}"), Address)

    def _built_in_size_of(self, node: ast.Call) -> Operand:
        return Operand(str(8 * len(fields_of(self._typed(node.args[0])))), int)

    def _built_in_stack(self, node: ast.Call) -> Operand:
        size = eval(ast.unparse(node.args[0]), dict(self.globals))  # noqa: S307 (our own source)
        self.count += 1
        self.slots.append(f"  %buffer{self.count} = alloca [{size} x i8], align 16")
        return Operand(f"%buffer{self.count}", Address)

    def _built_in_bits_of(self, node: ast.Call) -> Operand:
        (given,) = map(self.expression, node.args)
        text = f"ptrtoint ptr {given.text}" if given.llvm == "ptr" else f"bitcast double {given.text}"
        return Operand(self.value(f"{text} to i64"), int)

    def _built_in_float_of(self, node: ast.Call) -> Operand:
        (given,) = map(self.expression, node.args)
        return Operand(self.value(f"bitcast i64 {given.text} to double"), float)

    def _built_in_float(self, node: ast.Call) -> Operand:
        (given,) = map(self.expression, node.args)
        return Operand(self.value(f"sitofp i64 {given.text} to double"), float)

    def _built_in_invoke(self, node: ast.Call) -> Operand:
        function, *given = map(self.expression, node.args)
        text = ", ".join(f"ptr {each.text}" for each in given)
        return Operand(self.value(f"sext i32 {self.value(f'call i32 {function.text}({text})')} to i64"), int)

    def _built_in_exchange(self, node: ast.Call) -> Operand:
        array, index, value = map(self.expression, node.args)
        place = self.value(f"getelementptr i64, ptr {array.text}, i64 {index.text}")
        return Operand(self.value(f"atomicrmw xchg ptr {place}, i64 {value.text} acq_rel"), int)

    def _built_in_compare_exchange(self, node: ast.Call) -> Operand:
        array, index, expected, value = map(self.expression, node.args)
        place = self.value(f"getelementptr i64, ptr {array.text}, i64 {index.text}")
        words = f"i64 {expected.text}, i64 {value.text}"
        pair = self.value(f"cmpxchg ptr {place}, {words} acq_rel acquire")
        return Operand(self.value(f"extractvalue {{ i64, i1 }} {pair}, 0"), int)

    def _built_in_min(self, node: ast.Call) -> Operand:
        return self._extremum("smin", node)

    def _built_in_max(self, node: ast.Call) -> Operand:
        return self._extremum("smax", node)

    def _extremum(self, intrinsic: str, node: ast.Call) -> Operand:
        a, b = map(self.expression, node.args)
        self.declarations[intrinsic] = f"declare i64 @llvm.{intrinsic}.i64(i64, i64)"
        return Operand(self.value(f"call i64 @llvm.{intrinsic}.i64(i64 {a.text}, i64 {b.text})"), int)

    def _built_in_c(self, node: ast.Call) -> Operand:
        name = f"@{self.function.__name__}.text{len(self.texts)}"
        return Operand(self.texts.setdefault(ast.literal_eval(node.args[0]), name), Array[Byte])

    def _built_in_table(self, node: ast.Call) -> Operand:
        make = self._resolve(node.args[0])
        name = table_symbol(make)
        self.tables[name] = make
        return Operand(f"@{name}", Array[Int32])

    def _built_in_ord(self, node: ast.Call) -> Operand:
        return Operand(str(ord(ast.literal_eval(node.args[0]))), int)

    def _built_in_int(self, node: ast.Call) -> Operand:
        (given,) = map(self.expression, node.args)
        conversion = "zext i1" if given.llvm == "i1" else "fptosi double"
        return Operand(self.value(f"{conversion} {given.text} to i64"), int)
