"""The layers of einops and e3nn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from benchmarks.modules.case import Excluded, ModuleCase, found, maker, normal

# --------------------------------------------------------------------------------------------------------------- einops


def _einops(name: str, kind: str, pattern: str, *more: Any, on: tuple[int, ...], **axes: Any) -> ModuleCase:
    make = maker(f"einops.layers.torch.{kind}", pattern, *more, **axes)
    return ModuleCase("einops", name, make, normal(on), differentiated=(0,))


def _network() -> nn.Module:
    rearrange, reduce = found("einops.layers.torch.Rearrange"), found("einops.layers.torch.Reduce")
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2),
        nn.Conv2d(16, 32, 3, padding=1),
        reduce("b c (h h2) (w w2) -> b c h w", "mean", h2=4, w2=4),
        rearrange("b c h w -> b (c h w)"),
        nn.Linear(32 * 16, 10),
    )


_EINOPS: Final = (
    _einops("Rearrange, heads", "Rearrange", "b n (h d) -> b h n d", on=(4, 16, 64), h=4),
    _einops("Rearrange, patches", "Rearrange", "b c (h p) (w q) -> b (h w) (p q c)", on=(2, 3, 32, 32), p=8, q=8),
    *(
        _einops(f"Reduce, {how}", "Reduce", "b c (h p) (w q) -> b c h w", how, on=(4, 16, 32, 32), p=2, q=2)
        for how in ("max", "mean", "sum")
    ),
    _einops("Reduce, all pixels", "Reduce", "b c h w -> b c", "mean", on=(4, 16, 32, 32)),
    _einops("EinMix", "EinMix", "b n c -> b n d", on=(4, 16, 64), weight_shape="c d", bias_shape="d", c=64, d=32),
    ModuleCase("einops", "network", _network, normal((4, 3, 32, 32))),
)

# ----------------------------------------------------------------------------------------------------------------- e3nn

FEATURES: Final = "8x0e + 8x1o + 4x2e"


def _generated_code_stays_python() -> None:
    """Keep e3nn from handing its generated code to torch.jit: what is eager is eager in this table."""
    found("e3nn.set_optimization_defaults")(jit_script_fx=False, jit_mode="eager")


def _width(irreps: str) -> int:
    """Return the width of irreps such as ``8x0e + 4x1o``."""
    parts = (part.strip().split("x") for part in irreps.split("+"))
    return sum(int(count) * (2 * int(kind[0]) + 1) for count, kind in parts)


def _e3nn(
    name: str, path: str, *arguments: Any, on: tuple[int, ...], second: tuple[int, ...] = (), **keywords: Any
) -> Any:
    shapes = (on, second) if second else (on,)
    return ModuleCase(
        "e3nn",
        name,
        maker(f"e3nn.{path}", *arguments, **keywords),
        normal(*shapes),
        differentiated=(0,),
        prepare=_generated_code_stays_python,
    )


def _product(kind: str, one: str, other: str, *more: str) -> ModuleCase:
    return _e3nn(kind, f"o3.{kind}", one, other, *more, on=(16, _width(one)), second=(16, _width(other)))


def _on_features(path: str, *arguments: Any, irreps: str = FEATURES, **keywords: Any) -> ModuleCase:
    kind = path.rpartition(".")[2]
    return _e3nn(kind, path, *arguments, on=(16, _width(irreps)), **keywords)


def _with_irreps(path: str, irreps: str, *arguments: Any) -> Callable[[], Any]:
    return lambda: found(path)(found("e3nn.o3.Irreps")(irreps), *arguments)


_E3NN: Final = (
    _on_features("o3.Linear", FEATURES, "4x0e + 8x1o + 2x2e"),
    _on_features("o3.Norm", FEATURES),
    _product("FullyConnectedTensorProduct", FEATURES, "1x0e + 1x1o + 1x2e", "8x0e + 8x1o"),
    _product("FullTensorProduct", "4x0e + 2x1o", "1x0e + 1x1o"),
    _product("ElementwiseTensorProduct", "8x0e + 8x1o", "8x0e + 8x1o"),
    _on_features("o3.TensorSquare", "4x0e + 2x1o", irreps="4x0e + 2x1o"),
    _e3nn("SphericalHarmonics", "o3.SphericalHarmonics", [0, 1, 2, 3], True, "component", on=(64, 3)),
    _e3nn("ToS2Grid", "o3.ToS2Grid", 3, (10, 9), on=(16, 16)),
    _e3nn("FromS2Grid", "o3.FromS2Grid", (10, 9), 3, on=(16, 10, 9)),
    _on_features("nn.Activation", "16x0e", [torch.tanh], irreps="16x0e"),
    _on_features("nn.Gate", "8x0e", [torch.relu], "8x0e", [torch.sigmoid], "8x1o", irreps="16x0e + 8x1o"),
    _on_features("nn.Dropout", FEATURES, 0.3),
    ModuleCase(
        "e3nn",
        "BatchNorm",
        _with_irreps("e3nn.nn.BatchNorm", FEATURES),
        normal((16, _width(FEATURES))),
        differentiated=(0,),
        prepare=_generated_code_stays_python,
    ),
    ModuleCase(
        "e3nn",
        "NormActivation",
        _with_irreps("e3nn.nn.NormActivation", FEATURES, torch.sigmoid),
        normal((16, _width(FEATURES))),
        differentiated=(0,),
        prepare=_generated_code_stays_python,
    ),
    ModuleCase(
        "e3nn",
        "S2Activation",
        _with_irreps("e3nn.nn.S2Activation", "1x0e + 1x1o + 1x2e", torch.tanh, 10),
        normal((16, 9)),
        differentiated=(0,),
        prepare=_generated_code_stays_python,
    ),
    _e3nn("FullyConnectedNet", "nn.FullyConnectedNet", [16, 32, 8], torch.relu, on=(16, 16)),
)

CASES: Final[tuple[ModuleCase, ...]] = (*_EINOPS, *_E3NN)
EXCLUDED: Final = (
    Excluded("einops.RearrangeMixin", "abstract base"),
    Excluded("einops.ReduceMixin", "abstract base"),
    Excluded("e3nn.Identity", "does nothing"),
    Excluded("e3nn.Extract", "slices; part of Gate"),
    Excluded("e3nn.ExtractIr", "slices; part of Gate"),
    Excluded("e3nn.SO3Activation", "grids of gigabytes at the sizes of its examples"),
    Excluded("e3nn.SO3Grid", "part of SO3Activation"),
    Excluded("e3nn.TensorProduct", "base of the products, with instructions by hand"),
    Excluded("e3nn.FullTensorProductv2", "another form of FullTensorProduct, in development"),
    Excluded("e3nn.ReducedTensorProducts", "sums of TensorProduct"),
    Excluded("e3nn.Legendre", "part of SphericalHarmonicsAlphaBeta"),
    Excluded("e3nn.SphericalHarmonicsAlphaBeta", "SphericalHarmonics in other coordinates"),
)
