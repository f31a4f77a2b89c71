"""Raising and catching: programs know the class of an exception by its name."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, NoReturn

from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ops.registration.declare import implements, implements_for_node

TRIED: Final = "<tried>"
"""The name of the body of a ``try`` in tracebacks."""

word_error: Final = LayerHook[Callable[[BaseException], None]]("rekindle.runtime.executor")
"""Replaces the message of a caught IndexError by the one that Python gives."""

EXCEPTION_CLASSES: Final[dict[str, type[BaseException]]] = {}
"""Classes of exceptions by qualified name (``package.module.Class``). Python's own are not listed; the compiler adds
other classes when it compiles a ``raise`` of one."""


_ASSERTION: Final = "AssertionError: "
"""How the message of a failed ``assert`` begins: the IR has no other mark of it."""


class UnknownExceptionError(RuntimeError):
    """A program raised an exception whose class is known by name only, as programs from archives do. The message names
    the class."""


def exception_class(name: str) -> type[BaseException] | None:
    """Return the class called ``name`` (``ValueError``, ``builtins.ValueError``, ``package.module.Class``); None where
    none is known."""
    found = EXCEPTION_CLASSES.get(name)
    if found is not None:
        return found
    module, _, basename = name.rpartition(".")
    if module in ("", "builtins"):
        builtin = getattr(builtins, basename, None)
        if isinstance(builtin, type) and issubclass(builtin, BaseException):
            return builtin
    return None


def make_exception(message: str, name: str | None, arguments: tuple[Any, ...] | None = None) -> BaseException:
    """Return the exception that a program raises: an object of the class called ``name``, an UnknownExceptionError if
    that is not known. Without a name it is a RuntimeError, or an AssertionError for an assertion. ``arguments`` are
    those of the class, by default the message; ``__init__`` does not run if it refuses them."""
    if name is None and message.startswith(_ASSERTION):
        message, name = message[len(_ASSERTION) :], "AssertionError"
    if name is None:
        return RuntimeError(message)
    found = exception_class(name)
    if found is None:
        return UnknownExceptionError(f"{name}: {message}" if message else name)
    if arguments is None:
        arguments = (message,) if message else ()
    try:
        return found(*arguments)
    except TypeError:
        # Its __init__ takes something else. The program has but the text, which is worth more than how it was made.
        made: BaseException = found.__new__(found, *arguments)
        return made


@implements("prim::is_exception(Any exception, str[] classes) -> bool")
def is_exception(exception: Any, classes: list[str]) -> bool:
    """Return whether an exception is an instance of one of the classes with these names."""
    known = (exception_class(name) for name in classes)
    return any(cls is not None and isinstance(exception, cls) for cls in known)


@implements("prim::exception_name(Any exception) -> str")
def exception_name(exception: Any) -> str:
    """Return the name of the class of an exception: ``type(e).__name__``."""
    if type(exception) is UnknownExceptionError:
        return str(exception).partition(":")[0].rpartition(".")[2]
    return type(exception).__name__


@implements_for_node("prim::Try(...) -> ...", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def try_subgraph(node: Node) -> Operation:
    """Return the operation of a ``try``: it runs the subgraph. Its first result is the number of the exit, or -1 if it
    raised; the second one is then the exception, else None."""
    run = callable_of(node.get_graph("Subgraph"), TRIED)

    def attempt(*inputs: Any) -> tuple[int, BaseException | None]:
        try:
            return run(*inputs), None
        except BaseException as error:
            if type(error) is IndexError:
                word_error.get()(error)
            return -1, error

    return attempt


@implements("prim::RaiseException(str msg, str? cls=None) -> ()", side_effects=True)
def raise_exception(msg: str, cls: str | None = None) -> NoReturn:
    """Raise an exception of the class called ``cls``."""
    raise make_exception(msg, cls)


@implements("prim::RaiseException.arguments(str msg, str? cls, Any arguments) -> ()", side_effects=True)
def raise_with(msg: str, cls: str | None, arguments: Any) -> NoReturn:
    """Raise ``cls(*arguments)``; ``msg`` is the message of the error in TorchScript."""
    raise make_exception(msg, cls, arguments)


@implements("prim::RaiseException.caught(Any exception) -> ()", side_effects=True)
def raise_again(exception: Any) -> NoReturn:
    """Raise an exception that was caught."""
    raise exception
