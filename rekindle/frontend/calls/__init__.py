"""Emit calls.

``call_expressions`` emits the callee and selects how the call is emitted. ``special_calls`` has calls whose arguments
are not simply evaluated, ``arguments`` emits the arguments of other calls, and ``builtin_calls`` selects an overload.
``generic`` binds arguments to the parameters of a function without declared types, which is compiled for each call's
types (``monomorphization``).
"""
