"""Every concrete module of ``torch.nn``, and combinations of them that people script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from benchmarks.modules.case import BOTH, Excluded, Modes, ModuleCase, normal

VECTORS: Final = (32, 256)
SEQUENCES: Final = (8, 16, 128)
IMAGES: Final = (4, 16, 32, 32)
VOLUMES: Final = (2, 8, 8, 16, 16)
BY_RANK: Final = {"1d": SEQUENCES, "2d": IMAGES, "3d": VOLUMES}


def _layer(
    kind: str,
    *arguments: Any,
    on: tuple[int, ...] | Callable[[], tuple[Any, ...]] = VECTORS,
    differentiated: tuple[int, ...] = (0,),
    modes: Modes = BOTH,
    name: str = "",
    result: Callable[[Any], Any] = lambda found: found,
    **keywords: Any,
) -> ModuleCase:
    inputs = normal(on) if isinstance(on, tuple) else on
    return ModuleCase(
        "torch.nn",
        name or kind,
        lambda: getattr(nn, kind)(*arguments, **keywords),  # when measured: other releases may lack it
        inputs,
        differentiated=differentiated,
        modes=modes,
        result=result,
    )


def _by_rank(kind: str, ranks: str, *arguments: Any, **keywords: Any) -> list[ModuleCase]:
    """Return a case for each rank: ``ranks`` is ``"12"`` for 1d and 2d."""
    return [_layer(f"{kind}{rank}d", *arguments, on=BY_RANK[f"{rank}d"], **keywords) for rank in ranks]


def _classes(*shape: int, classes: int) -> Tensor:
    return torch.randint(0, classes, shape)


def _ctc() -> tuple[Any, ...]:
    scores = torch.randn(50, 8, 20).log_softmax(2)
    lengths = torch.full((8,), 50), torch.full((8,), 12)
    return scores.detach(), torch.randint(1, 20, (8, 12)), *lengths


def _pooled(kind: str, shape: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(getattr(nn, kind)(2, return_indices=True)(torch.randn(shape)))


# --------------------------------------------------------------------------------------------------------- elementwise

_ACTIVATIONS: Final[dict[str, tuple[Any, ...]]] = {
    "AlphaDropout": (0.3,),
    "CELU": (),
    "Dropout": (0.3,),
    "ELU": (),
    "FeatureAlphaDropout": (0.3,),
    "GELU": (),
    "GLU": (),
    "Hardshrink": (),
    "Hardsigmoid": (),
    "Hardswish": (),
    "Hardtanh": (),
    "Identity": (),
    "LeakyReLU": (),
    "LogSigmoid": (),
    "LogSoftmax": (1,),
    "Mish": (),
    "PReLU": (256,),
    "RReLU": (),
    "ReLU": (),
    "ReLU6": (),
    "SELU": (),
    "SiLU": (),
    "Sigmoid": (),
    "Softmax": (1,),
    "Softmin": (1,),
    "Softplus": (),
    "Softshrink": (),
    "Softsign": (),
    "Tanh": (),
    "Tanhshrink": (),
    "Threshold": (0.1, 0.0),
    "Unflatten": (1, (16, 16)),
}

# ---------------------------------------------------------------------------------- convolution, pooling, normalization

_SPATIAL: Final = (
    *(_layer(f"Conv{n}d", c, 2 * c, 3, padding=1, on=BY_RANK[f"{n}d"]) for n, c in ((1, 16), (2, 16), (3, 8))),
    *(_layer(f"ConvTranspose{n}d", c, c, 2, stride=2, on=BY_RANK[f"{n}d"]) for n, c in ((1, 16), (2, 16), (3, 8))),
    *_by_rank("AvgPool", "123", 2),
    *_by_rank("MaxPool", "123", 2),
    *_by_rank("LPPool", "123", 2, 2),
    *_by_rank("AdaptiveAvgPool", "123", 4),
    *_by_rank("AdaptiveMaxPool", "123", 4),
    *_by_rank("FractionalMaxPool", "23", 2, output_ratio=0.5),
    *(_layer(f"MaxUnpool{n}d", 2, on=_pooled(f"MaxPool{n}d", BY_RANK[f"{n}d"])) for n in (1, 2, 3)),
    *(
        _layer(f"{kind}{n}d", c, on=BY_RANK[f"{n}d"], **options)
        for kind, options in (("BatchNorm", {}), ("InstanceNorm", {"affine": True}))
        for n, c in ((1, 16), (2, 16), (3, 8))
    ),
    _layer("GroupNorm", 4, 16, on=IMAGES),
    _layer("LayerNorm", 256),
    _layer("RMSNorm", 256),
    _layer("LocalResponseNorm", 5, on=IMAGES),
    _layer("CrossMapLRN2d", 5, on=IMAGES),
    *_by_rank("Dropout", "123", 0.3),
    *(
        case
        for kind in ("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad")
        for case in _by_rank(kind, "123", 2)
    ),
    *_by_rank("ConstantPad", "123", 2, 0.5),
    _layer("Flatten", on=IMAGES),
    _layer("ChannelShuffle", 4, on=IMAGES),
    _layer("PixelShuffle", 2, on=IMAGES),
    _layer("PixelUnshuffle", 2, on=IMAGES),
    _layer("Fold", (32, 32), 2, stride=2, on=(4, 64, 256)),
    _layer("Unfold", 3, padding=1, on=IMAGES),
    _layer("Softmax2d", on=IMAGES),
    _layer("Upsample", scale_factor=2.0, on=IMAGES),
    _layer("Upsample", scale_factor=2.0, mode="bilinear", on=IMAGES, name="Upsample, bilinear"),
    _layer("UpsamplingBilinear2d", scale_factor=2, on=IMAGES),
    _layer("UpsamplingNearest2d", scale_factor=2, on=IMAGES),
)

# ------------------------------------------------------------------------------------- products, tables and recurrences


def _recurrent(kind: type[nn.RNNBase]) -> ModuleCase:
    """Return a case of a layer in a Sequential: ``torch.jit.script`` compiles an overloaded ``forward`` where it is
    called, and only there."""

    def make() -> nn.Sequential:
        return nn.Sequential(kind(64, 64, 2))

    return ModuleCase("torch.nn", kind.__name__, make, normal((20, 4, 64)), differentiated=(0,))


_RECURRENT: Final = tuple(_recurrent(kind) for kind in (nn.RNN, nn.LSTM, nn.GRU))
_DENSE: Final = (
    _layer("Linear", 256, 128),
    _layer("Bilinear", 32, 32, 16, on=normal((16, 32), (16, 32)), differentiated=(0, 1)),
    _layer("Embedding", 1000, 64, on=lambda: (_classes(8, 32, classes=1000),), differentiated=()),
    _layer("EmbeddingBag", 1000, 64, on=lambda: (_classes(8, 32, classes=1000),), differentiated=()),
    _layer("CosineSimilarity", on=normal(VECTORS, VECTORS), differentiated=(0, 1)),
    _layer("PairwiseDistance", on=normal(VECTORS, VECTORS), differentiated=(0, 1)),
    *_RECURRENT,
    *(_layer(kind, 64, 64, on=normal((4, 64), (4, 64))) for kind in ("RNNCell", "GRUCell")),
    _layer("LSTMCell", 64, 64, on=lambda: (torch.randn(4, 64), (torch.randn(4, 64), torch.randn(4, 64)))),
)


# ------------------------------------------------------------------------------------------------------------ attention


def _itself(*shape: int) -> Callable[[], tuple[Tensor, Tensor, Tensor]]:
    def make() -> tuple[Tensor, Tensor, Tensor]:
        x = torch.randn(shape)
        return x, x, x

    return make


def _encoder_layer(**options: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, **options)


def _stack(name: str, make: Callable[[], Any], *shapes: tuple[int, ...]) -> ModuleCase:
    return ModuleCase("torch.nn", name, make, normal(*shapes), differentiated=(0,))


_ATTENTION: Final = (
    _layer("MultiheadAttention", 64, 4, batch_first=True, on=_itself(4, 16, 64)),
    _layer(
        "MultiheadAttention",
        256,
        8,
        batch_first=True,
        on=_itself(4, 64, 256),
        name="MultiheadAttention, 256 wide",
    ),
    _stack("TransformerEncoderLayer", _encoder_layer, (4, 16, 64)),
    _stack(
        "TransformerEncoderLayer, norm first, gelu",
        lambda: _encoder_layer(norm_first=True, activation="gelu"),
        (4, 16, 64),
    ),
    _stack("TransformerEncoder", lambda: nn.TransformerEncoder(_encoder_layer(), 6), (4, 16, 64)),
    _stack(
        "TransformerDecoderLayer",
        lambda: nn.TransformerDecoderLayer(64, 4, 128, batch_first=True),
        (4, 12, 64),
        (4, 16, 64),
    ),
    _stack(
        "TransformerDecoder",
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, batch_first=True), 4),
        (4, 12, 64),
        (4, 16, 64),
    ),
    _stack("Transformer", lambda: nn.Transformer(64, 4, 6, 6, 128, batch_first=True), (4, 16, 64), (4, 12, 64)),
)

# --------------------------------------------------------------------------------------------------------------- losses


def _loss(kind: str, inputs: Callable[[], tuple[Any, ...]], *arguments: Any, **keywords: Any) -> ModuleCase:
    return _layer(kind, *arguments, on=inputs, **keywords)


def _signs() -> Tensor:
    return torch.randint(0, 2, (32,)) * 2.0 - 1.0


_LOSSES: Final = (
    *(_loss(kind, normal(VECTORS, VECTORS)) for kind in ("HuberLoss", "L1Loss", "MSELoss", "SmoothL1Loss")),
    _loss("AdaptiveLogSoftmaxWithLoss", lambda: (torch.randn(32, 64), _classes(32, classes=500)), 64, 500, (50, 200)),
    _loss("BCELoss", lambda: (torch.rand(VECTORS), torch.rand(VECTORS))),
    _loss("BCEWithLogitsLoss", lambda: (torch.randn(VECTORS), torch.rand(VECTORS))),
    _loss("CTCLoss", _ctc),
    _loss("CosineEmbeddingLoss", lambda: (torch.randn(VECTORS), torch.randn(VECTORS), _signs())),
    _loss("CrossEntropyLoss", lambda: (torch.randn(VECTORS), _classes(32, classes=256))),
    _loss("GaussianNLLLoss", lambda: (torch.randn(VECTORS), torch.randn(VECTORS), torch.rand(VECTORS))),
    _loss("HingeEmbeddingLoss", lambda: (torch.randn(32), _signs())),
    _loss("KLDivLoss", lambda: (torch.randn(VECTORS), torch.rand(VECTORS)), reduction="batchmean"),
    _loss("LinearCrossEntropyLoss", lambda: (torch.randn(32, 64), _classes(32, classes=100)), 64, 100),
    _loss("MarginRankingLoss", lambda: (torch.randn(32), torch.randn(32), _signs())),
    _loss("MultiLabelMarginLoss", lambda: (torch.randn(32, 16), torch.arange(16).repeat(32, 1))),
    _loss("MultiLabelSoftMarginLoss", lambda: (torch.randn(VECTORS), torch.randint(0, 2, VECTORS).float())),
    _loss("MultiMarginLoss", lambda: (torch.randn(VECTORS), _classes(32, classes=256))),
    _loss("NLLLoss", lambda: (torch.randn(VECTORS), _classes(32, classes=256))),
    _loss("PoissonNLLLoss", lambda: (torch.randn(VECTORS), torch.rand(VECTORS))),
    _loss("SoftMarginLoss", lambda: (torch.randn(32), _signs())),
    _loss("TripletMarginLoss", normal(VECTORS, VECTORS, VECTORS)),
    _loss("TripletMarginWithDistanceLoss", normal(VECTORS, VECTORS, VECTORS)),
)

# --------------------------------------------------------------------------------------------------------- combinations


class WordsAndFeatures(nn.Module):
    """An EmbeddingBag with offsets, and a Bilinear of it and features."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(1000, 32)
        self.product = nn.Bilinear(32, 16, 8)

    def forward(self, words: Tensor, offsets: Tensor, features: Tensor) -> Tensor:
        return torch.relu(self.product(self.words(words, offsets), features))


def _upsampling() -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(16, 8, 2, stride=2),
        nn.InstanceNorm2d(8, affine=True),
        nn.ReLU(),
        nn.Upsample(scale_factor=2.0),
        nn.Conv2d(8, 3, 3, padding=1),
    )


def _perceptron() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 10))


_COMBINATIONS: Final = (
    ModuleCase(
        "torch.nn",
        "EmbeddingBag and Bilinear",
        WordsAndFeatures,
        lambda: (_classes(64, classes=1000), torch.arange(0, 64, 4), torch.randn(16, 16)),
    ),
    _stack("ConvTranspose, InstanceNorm, Upsample, Conv", _upsampling, (2, 16, 8, 8)),
    _stack("Sequential", _perceptron, (16, 64)),
)

CASES: Final[tuple[ModuleCase, ...]] = (
    *(_layer(kind, *arguments) for kind, arguments in _ACTIVATIONS.items()),
    *_SPATIAL,
    *_DENSE,
    *_ATTENTION,
    *_LOSSES,
    *_COMBINATIONS,
)

EXCLUDED: Final = (
    Excluded("Module", "abstract base"),
    Excluded("RNNBase", "abstract base of RNN, LSTM and GRU"),
    Excluded("RNNCellBase", "abstract base of the cells"),
    Excluded("Container", "deprecated name of Module"),
    Excluded("NLLLoss2d", "deprecated name of NLLLoss"),
    Excluded("ModuleDict", "container without forward"),
    Excluded("ModuleList", "container without forward"),
    Excluded("ParameterDict", "container without forward"),
    Excluded("ParameterList", "container without forward"),
    Excluded("DataParallel", "calls replicas on several devices"),
    Excluded("SyncBatchNorm", "takes no tensors of CPUs"),
    *(
        Excluded(f"Lazy{kind}", f"becomes {kind} in its first call")
        for kind in (
            *(f"{kind}{n}d" for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)),
            "Linear",
        )
    ),
)


def available() -> set[str]:
    """Return the names of all module classes of ``torch.nn``."""
    classes = {name: value for name, value in vars(nn).items() if isinstance(value, type)}
    return {name for name, kind in classes.items() if issubclass(kind, nn.Module)}


def covered() -> set[str]:
    """Return the names of the classes that are cases."""
    return {case.name for case in _RECURRENT} | {type(case.make()).__name__ for case in CASES}
