"""With statements: call ``__exit__`` when an error leaves one."""

from __future__ import annotations

from typing import Any

from rekindle.errors import RekindleError


def leave_all(managers: list[Any], error: BaseException) -> None:
    """Call ``__exit__`` of the context managers with ``error``, the last of ``managers`` (the innermost) first, and
    empty the list.

    Raises:
        BaseException: what one of them raises, in place of ``error``.
        RekindleError: one of them returns that the error is suppressed. Python would continue after the with statement,
            where a program does not know which variables were assigned.
    """
    raised = error
    while managers:
        manager = managers.pop()
        try:
            if manager.__exit__(type(raised), raised, raised.__traceback__):
                raise RekindleError(
                    f"__exit__ of '{type(manager).__name__}' swallows a {type(raised).__name__}: {raised}\n"
                    "A compiled program cannot continue after a with statement that an error has left.\n"
                    "Hint: let __exit__ return None, and leave the with statement to Python, in a function marked "
                    "with @ignore"
                ) from raised
        except BaseException as another:
            raised = another
    if raised is not error:
        raise raised
