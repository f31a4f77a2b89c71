"""Emit calls.

``call_expressions`` emits the callee and decides; ``special_calls`` has calls whose arguments are not simply evaluated.
``arguments`` emits the others, ``builtin_calls`` chooses an overload. ``generic`` binds arguments to the parameters of
a function without declared types, which is compiled for each call's types (``monomorphization``).
"""
