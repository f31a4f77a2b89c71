"""Modules of libraries that ``torch.jit.script`` refuses, each with two inputs of different sizes.

The libraries are those of the dependency group ``real-modules``; where one is not installed its cases are skipped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(slots=True, frozen=True)
class Case:
    """``needed`` says what of Python the module is made of that TorchScript does not take."""

    library: str
    name: str
    make: Callable[[], Any]
    inputs: tuple[tuple[Any, ...], tuple[Any, ...]]
    needed: str


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _transformers(model: str, name: str) -> Any:
    return _found(f"transformers.models.{model}.modeling_{model}.{name}")


def _config(name: str, **options: Any) -> Any:
    config = _found(f"transformers.{name}")(**options)
    config._attn_implementation = "eager"
    return config


def _sizes(heads: int = 4) -> dict[str, int]:
    return {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": heads, "num_hidden_layers": 2}


def _rotary(batch: int, length: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, length, 8), torch.randn(batch, length, 8)


_generator_state = torch.get_rng_state()
torch.manual_seed(0)
_HIDDEN = ((torch.randn(2, 5, 32),), (torch.randn(3, 7, 32),))
_ROTATED = (
    (torch.randn(2, 5, 32), _rotary(2, 5), None),
    (torch.randn(3, 7, 32), _rotary(3, 7), torch.randn(3, 1, 7, 7)),
)
_IMAGES = ((torch.randn(2, 8, 16, 16),), (torch.randn(1, 8, 20, 20),))
_PAIRS = ((torch.rand(2, 3, 12, 14), torch.rand(2, 3, 12, 14)), (torch.rand(1, 3, 16, 9), torch.rand(1, 3, 16, 9)))
_POSITIONS = tuple((torch.randn(2, n, 32), torch.arange(n)[None]) for n in (5, 7))
_BIASED = tuple(
    (torch.randn(b, n, 32), torch.randn(4 * b, 1, n), torch.ones(b, 1, n, n).triu(1) > 0) for b, n in ((2, 5), (3, 7))
)
torch.set_rng_state(_generator_state)

_TABLE = (
    "a configuration object, a table of attention functions, `Callable` as a variable, the module as an argument, "
    "`**kwargs`"
)
_CACHE = f"{_TABLE}, `Optional[Cache]`, `x.reshape(*shape, -1)`, `(*shape, -1, n)`"


def _grouped(model: str, prefix: str) -> Case:
    def make() -> Any:
        config = _config(f"{prefix}Config", num_key_value_heads=2, head_dim=8, **_sizes())
        return _transformers(model, f"{prefix}Attention")(config, 0)

    return Case("transformers", f"{prefix}Attention", make, _ROTATED, _CACHE)


def _layer(model: str, prefix: str) -> Case:
    def make() -> Any:
        config = _config(f"{prefix}Config", image_size=16, patch_size=4, **_sizes())
        return _transformers(model, f"{prefix}Layer")(config).eval()

    return Case("transformers", f"{prefix}Layer", make, _HIDDEN, _TABLE)


CASES: tuple[Case, ...] = (
    Case(
        "transformers",
        "LlamaRotaryEmbedding",
        lambda: _transformers("llama", "LlamaRotaryEmbedding")(_config("LlamaConfig", **_sizes())),
        (_POSITIONS[0], _POSITIONS[1]),
        "decorators (`@torch.no_grad()` and one of the library), `torch.autocast` with the device of the input",
    ),
    _grouped("llama", "Llama"),
    _grouped("mistral", "Mistral"),
    _grouped("qwen2", "Qwen2"),
    _layer("vit", "ViT"),
    _layer("deit", "DeiT"),
    _layer("vit_mae", "ViTMAE"),
    _layer("dinov2", "Dinov2"),
    Case(
        "transformers",
        "BloomBlock",
        lambda: _transformers("bloom", "BloomBlock")(_config("BloomConfig", hidden_size=32, n_head=4), 0).eval(),
        (_BIASED[0], _BIASED[1]),
        "a `__call__` of its base class, `Optional[Cache]`",
    ),
    Case(
        "transformers",
        "CLIPAttention",
        lambda: _transformers("clip", "CLIPAttention")(_config("CLIPVisionConfig", **_sizes())).eval(),
        _HIDDEN,
        f"{_TABLE}, an `Optional[bool]` where a `bool` is declared",
    ),
    Case(
        "transformers",
        "ConvNextLayer",
        lambda: _transformers("convnext", "ConvNextLayer")(_config("ConvNextConfig"), 8).eval(),
        _IMAGES,
        "`super().forward(…)` of a class of PyTorch",
    ),
    Case(
        "transformers",
        "GELUTanh",
        lambda: _found("transformers.activations.GELUTanh")(),
        _HIDDEN,
        "an attribute that is a `functools.partial`",
    ),
    Case(
        "kornia",
        "losses.CharbonnierLoss",
        lambda: _found("kornia.losses.CharbonnierLoss")(),
        _PAIRS,
        '`x in ("mean", "sum", "none", None)`, exceptions with keyword arguments',
    ),
)
