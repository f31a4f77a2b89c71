"""Modules that ``torch.distributed`` has changed or wrapped: their hooks and their Python run around ``forward``.

PyTorch's distributed packages need not be there, so their classes are known by name.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from rekindle.errors import NotScriptableError

_WRAPPERS: Final = {
    "DistributedDataParallel": "compile the module within it: DistributedDataParallel(script(module))",
    "FullyShardedDataParallel": "compile the module within it: FullyShardedDataParallel(script(module))",
    "DataParallel": "compile the module within it: DataParallel(script(module))",
}
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks")


def check_not_distributed(module: torch.nn.Module) -> None:
    """Reject a module that only Python can run, because it is distributed over several processes.

    Raises:
        NotScriptableError: it is such a module; the hint states whether to compile before distributing.
    """
    for cls in type(module).__mro__:
        if not cls.__module__.startswith("torch."):
            continue
        if cls.__name__ == "FSDPModule":
            raise NotScriptableError(
                f"the module '{type(module).__name__}' is sharded by fully_shard, whose hooks only Python can run",
                hint="compile it before: fully_shard(script(module)); or compile its parts, and shard them one by one",
            )
        if cls.__name__ in _WRAPPERS:
            raise NotScriptableError(f"a {cls.__name__} can only be run by Python", hint=_WRAPPERS[cls.__name__])
    if any(_is_of_distributed(hook) for table in _HOOKS for hook in vars(module).get(table, {}).values()):
        raise NotScriptableError(
            f"the module '{type(module).__name__}' has hooks of torch.distributed (parallelize_module, "
            "distribute_module), which only Python can run",
            hint="compile the functions and modules within that have none, and leave this one to Python",
        )


def _is_of_distributed(hook: Any) -> bool:
    function = getattr(hook, "func", hook)  # functools.partial
    return str(getattr(function, "__module__", "")).startswith("torch.distributed.")
