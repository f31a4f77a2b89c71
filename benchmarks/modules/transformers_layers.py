"""Layers and small models of transformers, 64 wide with 4 heads, at 4 sequences of 16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks.modules.case import Excluded, ModuleCase, found, normal

WIDTH: Final = 64
HIDDEN: Final = (4, 16, WIDTH)
_PLAIN: Final = normal(HIDDEN)
_SIZES: Final = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
}


def _layer(
    model: str,
    kind: str,
    config: str,
    *arguments: Any,
    inputs: Callable[[], tuple[Any, ...]] = _PLAIN,
    differentiated: tuple[int, ...] = (0,),
    attention: str = "sdpa",
    **options: Any,
) -> ModuleCase:
    """Create a layer from a configuration, with PyTorch's attention operator if there is a choice."""

    def make() -> Any:
        settings = found(f"transformers.{config}")(**{**_SIZES, **options})
        settings._attn_implementation = attention
        return found(f"transformers.models.{model}.modeling_{model}.{kind}")(settings, *arguments)

    return ModuleCase("transformers", kind, make, inputs, differentiated=differentiated)


def _plain(model: str, kind: str, *arguments: Any, on: tuple[int, ...] = HIDDEN) -> ModuleCase:
    def make() -> Any:
        return found(f"transformers.models.{model}.modeling_{model}.{kind}")(*arguments)

    return ModuleCase("transformers", kind, make, normal(on), differentiated=(0,))


def _words() -> tuple[Tensor, ...]:
    return (torch.randint(0, 500, (4, 16)),)


def _with_mask() -> tuple[Tensor, ...]:
    return torch.randn(HIDDEN), torch.zeros(4, 1, 16, 16)


def _rotary() -> tuple[Any, ...]:
    cos, sin = torch.randn(4, 16, 16), torch.randn(4, 16, 16)
    return torch.randn(HIDDEN), (cos, sin), None


def _alibi() -> tuple[Tensor, ...]:
    return torch.randn(HIDDEN), torch.zeros(16, 1, 16), torch.zeros(4, 1, 16, 16, dtype=torch.bool)


def _with_positions() -> tuple[Any, ...]:
    """Call a layer with ``cache_position`` as the last argument, and return the tensors of its result."""
    return torch.randn(HIDDEN), *(None,) * 8, False, False, True, torch.arange(16)


def _windows() -> tuple[Any, ...]:
    return torch.randn(4, 64, WIDTH), (8, 8)


_GPT: Final = {"n_embd": WIDTH, "n_head": 4, "n_inner": 2 * WIDTH}
_BART: Final = {"d_model": WIDTH, "encoder_attention_heads": 4, "encoder_ffn_dim": 2 * WIDTH}
_T5: Final = {"d_model": WIDTH, "d_kv": 16, "d_ff": 2 * WIDTH, "num_heads": 4}
_GROUPED: Final = {"num_key_value_heads": 2, "head_dim": 16}

CASES: Final[tuple[ModuleCase, ...]] = (
    # encoders
    _layer("bert", "BertLayer", "BertConfig"),
    _layer("bert", "BertSelfOutput", "BertConfig", inputs=normal(HIDDEN, HIDDEN)),
    _layer("bert", "BertIntermediate", "BertConfig"),
    _layer("bert", "BertPooler", "BertConfig"),
    _layer("bert", "BertPredictionHeadTransform", "BertConfig"),
    _layer("bert", "BertEmbeddings", "BertConfig", inputs=_words, differentiated=(), vocab_size=500),
    _layer("roberta", "RobertaLayer", "RobertaConfig"),
    _layer("electra", "ElectraLayer", "ElectraConfig", attention="eager"),
    _layer("albert", "AlbertLayer", "AlbertConfig", inputs=_with_mask),
    _layer("distilbert", "TransformerBlock", "DistilBertConfig", dim=WIDTH, n_heads=4, hidden_dim=2 * WIDTH),
    _layer("mpnet", "MPNetLayer", "MPNetConfig"),
    _layer("layoutlm", "LayoutLMLayer", "LayoutLMConfig"),
    _layer(
        "mobilebert",
        "MobileBertLayer",
        "MobileBertConfig",
        intra_bottleneck_size=32,
        true_hidden_size=32,
        inputs=lambda: (torch.randn(HIDDEN), torch.zeros(4, 1, 1, 16)),
    ),
    _layer(
        "deberta_v2",
        "DebertaV2Layer",
        "DebertaV2Config",
        inputs=lambda: (torch.randn(HIDDEN), torch.ones(4, 1, 16, 16)),
    ),
    _layer("fnet", "FNetLayer", "FNetConfig"),
    _layer("bart", "BartEncoderLayer", "BartConfig", inputs=lambda: (torch.randn(HIDDEN), None, None), **_BART),
    _layer(
        "whisper", "WhisperEncoderLayer", "WhisperConfig", inputs=lambda: (torch.randn(HIDDEN), None, None), **_BART
    ),
    _layer("wav2vec2", "Wav2Vec2EncoderLayer", "Wav2Vec2Config"),
    # decoders
    _layer("gpt2", "GPT2Block", "GPT2Config", **_GPT),
    _layer("t5", "T5LayerFF", "T5Config", **_T5),
    _layer("t5", "T5Block", "T5Config", inputs=_with_positions, **_T5),
    _plain("t5", "T5LayerNorm", WIDTH),
    _layer("opt", "OPTDecoderLayer", "OPTConfig", ffn_dim=2 * WIDTH, inputs=_with_mask),
    _layer("bloom", "BloomBlock", "BloomConfig", n_head=4, inputs=_alibi),
    _layer("llama", "LlamaMLP", "LlamaConfig"),
    _layer("llama", "LlamaAttention", "LlamaConfig", 0, inputs=_rotary, **_GROUPED),
    _plain("llama", "LlamaRMSNorm", WIDTH),
    _layer(
        "llama",
        "LlamaRotaryEmbedding",
        "LlamaConfig",
        inputs=lambda: (torch.randn(HIDDEN), torch.arange(16)[None]),
        **_GROUPED,
    ),
    _layer("mistral", "MistralAttention", "MistralConfig", 0, inputs=_rotary, **_GROUPED),
    _layer("qwen2", "Qwen2Attention", "Qwen2Config", 0, inputs=_rotary, **_GROUPED),
    _layer("phi", "PhiMLP", "PhiConfig"),
    _plain("gemma", "GemmaRMSNorm", WIDTH),
    _layer("mixtral", "MixtralSparseMoeBlock", "MixtralConfig", num_local_experts=4),
    _layer("mamba", "MambaMixer", "MambaConfig", 0, state_size=8),
    # images
    _layer("vit", "ViTLayer", "ViTConfig"),
    _layer("deit", "DeiTLayer", "DeiTConfig"),
    _layer("beit", "BeitLayer", "BeitConfig"),
    _layer("dinov2", "Dinov2Layer", "Dinov2Config"),
    _layer("vit_mae", "ViTMAELayer", "ViTMAEConfig"),
    _layer("clip", "CLIPEncoderLayer", "CLIPVisionConfig", inputs=lambda: (torch.randn(HIDDEN), None, None)),
    _layer("clip", "CLIPMLP", "CLIPVisionConfig"),
    _layer("convnext", "ConvNextLayer", "ConvNextConfig", 32, inputs=normal((2, 32, 16, 16))),
    _layer("swin", "SwinLayer", "SwinConfig", WIDTH, (8, 8), 4, inputs=_windows, window_size=4),
    _plain("resnet", "ResNetBottleNeckLayer", 32, 64, 2, on=(2, 32, 16, 16)),
    _layer(
        "segformer",
        "SegformerLayer",
        "SegformerConfig",
        WIDTH,
        4,
        0.0,
        2,
        2,
        inputs=lambda: (torch.randn(4, 64, WIDTH), 8, 8),
    ),
    # activations
    *(
        ModuleCase(
            "transformers",
            kind,
            lambda kind=kind: found(f"transformers.activations.{kind}")(),
            normal(HIDDEN),
            differentiated=(0,),
        )
        for kind in ("NewGELUActivation", "FastGELUActivation", "QuickGELUActivation", "GELUTanh", "MishActivation")
    ),
)
EXCLUDED: Final[tuple[Excluded, ...]] = ()
"""The library has thousands of classes: this is a choice, of one layer for each architecture that is in wide use."""
