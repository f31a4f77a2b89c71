"""The context manager of a ``with`` statement: its methods are checked, and ``__enter__`` is emitted."""

from __future__ import annotations

from rekindle.errors import TypeMismatchError
from rekindle.frontend.emitter import Emitter
from rekindle.ir.graph import Value
from rekindle.syntax.views import Expr


def enter(emitter: Emitter, context: Value, expr: Expr) -> Value:
    """Emit ``__enter__`` of the context manager of a ``with`` statement, and return its result. Both methods are
    compiled.

    Raises:
        TypeMismatchError: the object has no ``__enter__`` and ``__exit__``, or ``__exit__`` does not take three
            arguments.
        CompileError: a method cannot be compiled.
    """
    methods = getattr(context.type, "methods", None)
    if not isinstance(methods, dict) or "__enter__" not in methods or "__exit__" not in methods:
        raise TypeMismatchError(
            f"a with statement needs an object with __enter__ and __exit__, got {context.type.annotation}",
            expr.range,
        )
    methods["__exit__"].ensure_defined(expr.range)
    taken = len(methods["__exit__"].schema.arguments) - 1
    if taken != 3:
        raise TypeMismatchError(
            f"__exit__ of '{context.type.annotation}' takes {taken} arguments besides self; "
            "a with statement gives it three: the class of an exception, the exception and its traceback",
            expr.range,
            hint="def __exit__(self, type: Any, value: Any, traceback: Any) -> None",
        )
    methods["__enter__"].ensure_defined(expr.range)
    result = methods["__enter__"].schema.returns[0].type
    return emitter.insert_node("prim::Enter", expr.range, [context], [result]).output
