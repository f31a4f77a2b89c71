"""Models of the library transformers, made small by their configurations, as programs of ``torch.export``. They are
there where the library is; its weights are not needed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.importing.programs import Program

NAMES: Final = (
    *("bert", "distilbert", "roberta", "albert", "electra", "gpt2", "llama", "qwen2", "t5_encoder", "vit"),
    *("dinov2", "convnext", "wav2vec2"),
)
"""The models; all but the last two are transformers."""

_TEXT: Final[dict[str, Any]] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
_IMAGE: Final[dict[str, Any]] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 8,
}
_ROWS: Final = Dim("rows", min=2, max=16)


def is_there() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("transformers") is not None


def _ids(rows: int) -> tuple[Tensor]:
    return (torch.randint(3, 50, (rows, 7)),)


def _images(rows: int) -> tuple[Tensor]:
    return (torch.randn(rows, 3, 16, 16),)


def transformers_models() -> dict[str, Program]:
    """The programs, by name; none where the library is not installed."""
    if not is_there():
        return {}
    import transformers as library

    makers: dict[str, Callable[[], nn.Module]] = {
        "bert": lambda: library.BertModel(library.BertConfig(**_TEXT)),
        "distilbert": lambda: library.DistilBertForMaskedLM(
            library.DistilBertConfig(vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
        ),
        "roberta": lambda: library.RobertaForSequenceClassification(library.RobertaConfig(**_TEXT, num_labels=3)),
        "albert": lambda: library.AlbertModel(library.AlbertConfig(**_TEXT, embedding_size=8)),
        "electra": lambda: library.ElectraForTokenClassification(library.ElectraConfig(**_TEXT, embedding_size=8)),
        "gpt2": lambda: library.GPT2LMHeadModel(
            library.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32, use_cache=False)
        ),
        "llama": lambda: library.LlamaForCausalLM(library.LlamaConfig(**_TEXT, num_key_value_heads=1, use_cache=False)),
        "qwen2": lambda: library.Qwen2ForCausalLM(library.Qwen2Config(**_TEXT, num_key_value_heads=1, use_cache=False)),
        "t5_encoder": lambda: library.T5EncoderModel(
            library.T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, use_cache=False)
        ),
        "vit": lambda: library.ViTForImageClassification(library.ViTConfig(**_IMAGE, num_labels=3)),
        "dinov2": lambda: library.Dinov2Model(library.Dinov2Config(**_IMAGE)),
        "convnext": lambda: library.ConvNextModel(
            library.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=16, patch_size=2)
        ),
        "wav2vec2": lambda: library.Wav2Vec2Model(
            library.Wav2Vec2Config(
                **{name: _TEXT[name] for name in _TEXT if name != "max_position_embeddings"},
                conv_dim=(8, 8),
                conv_stride=(5, 2),
                conv_kernel=(10, 3),
                num_conv_pos_embeddings=4,
                num_conv_pos_embedding_groups=2,
                num_feat_extract_layers=2,
            )
        ),
    }
    found: dict[str, Program] = {}
    for name in NAMES:
        inputs = {"vit": _images, "dinov2": _images, "convnext": _images}.get(name, _ids)
        others = [inputs(4)] if name in ("bert", "distilbert", "vit") else [inputs(2)]
        args: tuple[Any, ...] = (torch.randn(2, 200),) if name == "wav2vec2" else inputs(2)
        if name == "wav2vec2":
            others = [(torch.randn(2, 200),)]
        found[f"transformers.{name}"] = Program(
            _evaluating(makers[name]),
            args,
            others,
            shapes={_ARGUMENT.get(name, "input_ids"): {0: _ROWS}} if name in ("bert", "distilbert", "vit") else None,
        )
    return found


_ARGUMENT: Final = {"vit": "pixel_values"}


def _evaluating(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: make().eval()
