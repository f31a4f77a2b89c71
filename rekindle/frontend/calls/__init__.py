"""Emit calls.

``call_expressions`` emits the callee and decides; ``special_calls`` has calls whose arguments are not simply
evaluated. ``arguments`` emits the others, ``binding`` matches them with parameters, ``builtin_calls`` chooses an
overload. A function without declared parameter types (``generic``) is compiled for each call's types
(``monomorphization``).
"""
