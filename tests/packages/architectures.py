"""Architectures of ``transformers``, made from configurations, with random weights: nothing is fetched.

Sizes are those of the published models of the same name (the library's defaults, mostly). ``smaller`` says of those
that are not what was made less of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as T

Inputs = tuple[torch.Tensor, ...]


@dataclass(slots=True, frozen=True)
class Architecture:
    """``make`` gives the model; it is traced on ``example`` and compared on ``others``."""

    name: str
    make: Callable[[], torch.nn.Module]
    example: Callable[[], Inputs]
    others: Callable[[], list[Inputs]]
    smaller: str = ""


def _tokens(batch: int, length: int, vocabulary: int = 1000) -> torch.Tensor:
    return torch.randint(5, vocabulary, (batch, length))


def _mask(batch: int, length: int) -> torch.Tensor:
    """Rows of different lengths, the first of them full."""
    lengths = torch.linspace(length, length // 2, batch).long()
    return (torch.arange(length) < lengths[:, None]).long()


def _text(name: str, make: Callable[[], Any], *, masked: bool = False, smaller: str = "") -> Architecture:
    """A model of tokens: another batch size and another length."""

    def inputs(batch: int, length: int) -> Inputs:
        return (_tokens(batch, length), _mask(batch, length)) if masked else (_tokens(batch, length),)

    return Architecture(
        name, make, lambda: inputs(2, 16), lambda: [inputs(3, 16), inputs(2, 23), inputs(1, 9)], smaller
    )


def _images(name: str, make: Callable[[], Any], *sizes: int, smaller: str = "") -> Architecture:
    """A model of images: another batch size, and the further sizes of images that it takes."""

    def inputs(batch: int, size: int) -> Inputs:
        return (torch.randn(batch, 3, size, size),)

    return Architecture(
        name, make, lambda: inputs(2, 224), lambda: [inputs(3, 224), *(inputs(1, size) for size in sizes)], smaller
    )


def _sounds(name: str, make: Callable[[], Any], example: tuple[int, ...], *others: tuple[int, ...]) -> Architecture:
    return Architecture(
        name, make, lambda: (torch.randn(example),), lambda: [(torch.randn(shape),) for shape in others]
    )


def _whisper() -> torch.nn.Module:
    return T.WhisperModel(T.WhisperConfig()).get_encoder()


def _llama() -> T.LlamaConfig:
    return T.LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=4,
        num_attention_heads=16,
        num_key_value_heads=4,
        use_cache=False,
    )


def _albert() -> T.AlbertConfig:
    return T.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)


def _bart() -> T.BartConfig:
    return T.BartConfig(
        d_model=768,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
        use_cache=False,
    )


ARCHITECTURES = [
    _text("BERT base", lambda: T.BertModel(T.BertConfig())),
    _text("BERT base, masked", lambda: T.BertModel(T.BertConfig()), masked=True),
    _text("BERT base, plain attention", lambda: T.BertModel(T.BertConfig(attn_implementation="eager"))),
    _text("GPT-2", lambda: T.GPT2Model(T.GPT2Config(use_cache=False))),
    _text("T5 small, encoder", lambda: T.T5EncoderModel(T.T5Config())),
    _text("DistilBERT base", lambda: T.DistilBertModel(T.DistilBertConfig())),
    _text("RoBERTa base", lambda: T.RobertaModel(T.RobertaConfig())),
    _text("ELECTRA small", lambda: T.ElectraModel(T.ElectraConfig())),
    _text("ALBERT base", lambda: T.AlbertModel(_albert())),
    _text("OPT 125M", lambda: T.OPTModel(T.OPTConfig(use_cache=False)), masked=True),
    _text("BART base", lambda: T.BartModel(_bart())),
    _text("Llama", lambda: T.LlamaModel(_llama()), smaller="4 of 32 layers, 1024 of 4096 features"),
    _text("MPNet base", lambda: T.MPNetModel(T.MPNetConfig())),
    _text("DeBERTa v2", lambda: T.DebertaV2Model(T.DebertaV2Config(num_hidden_layers=4)), smaller="4 of 24 layers"),
    _text("CLIP base, text", lambda: T.CLIPTextModel(T.CLIPTextConfig())),
    _images("CLIP base, vision", lambda: T.CLIPVisionModel(T.CLIPVisionConfig())),
    _images("ViT base", lambda: T.ViTModel(T.ViTConfig())),
    _images("DeiT base", lambda: T.DeiTModel(T.DeiTConfig())),
    _images("BEiT base", lambda: T.BeitModel(T.BeitConfig())),
    _images("DINOv2 base", lambda: T.Dinov2Model(T.Dinov2Config(image_size=224)), 196),
    _images("Swin tiny", lambda: T.SwinModel(T.SwinConfig())),
    _images("ResNet 50", lambda: T.ResNetModel(T.ResNetConfig()), 160, 288),
    _images("RegNet", lambda: T.RegNetModel(T.RegNetConfig()), 160),
    _images("ConvNeXt tiny", lambda: T.ConvNextModel(T.ConvNextConfig()), 160, 288),
    _images("MobileNetV2", lambda: T.MobileNetV2Model(T.MobileNetV2Config()), 160, 288),
    _images("EfficientNet B7", lambda: T.EfficientNetModel(T.EfficientNetConfig()), 160),
    _images("SegFormer B0", lambda: T.SegformerModel(T.SegformerConfig()), 160, 288),
    _sounds("Whisper tiny, encoder", _whisper, (1, 80, 3000), (2, 80, 3000)),
    _sounds("Wav2Vec2 base", lambda: T.Wav2Vec2Model(T.Wav2Vec2Config()), (2, 8000), (3, 8000), (1, 16000)),
    _sounds("HuBERT base", lambda: T.HubertModel(T.HubertConfig()), (2, 8000), (3, 8000), (1, 16000)),
]
