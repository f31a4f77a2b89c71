"""One model of each file of ``timm.models``: the one with the fewest parameters, but for those made for tests."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.modules.case import Excluded, ModuleCase, found, normal

MODELS: Final = {
    "beit": ("beit_base_patch16_224", 224),
    "byoanet": ("halonet_h1", 256),
    "byobnet": ("mobileone_s1", 224),
    "cait": ("cait_xxs24_224", 224),
    "coat": ("coat_tiny", 224),
    "convit": ("convit_tiny", 224),
    "convmixer": ("convmixer_768_32", 224),
    "convnext": ("convnext_zepto_rms", 224),
    "cpubone": ("cpubone_nano", 224),
    "crossvit": ("crossvit_tiny_240", 240),
    "csatv2": ("csatv2", 256),
    "cspnet": ("cs3darknet_focus_s", 256),
    "cspnext": ("cspnext_tiny", 224),
    "davit": ("davit_tiny", 224),
    "deepseek_vit": ("deepseek_vit_412m", 112),
    "deit": ("deit_tiny_patch16_224", 224),
    "densenet": ("densenet121", 224),
    "dla": ("dla46x_c", 224),
    "dpn": ("dpn48b", 224),
    "edgenext": ("edgenext_xx_small", 256),
    "efficientformer": ("efficientformer_l1", 224),
    "efficientformer_v2": ("efficientformerv2_s0", 224),
    "efficientnet": ("mobilenetv2_035", 224),
    "efficientvim": ("efficientvim_m1", 224),
    "efficientvit_mit": ("efficientvit_b0", 224),
    "efficientvit_msra": ("efficientvit_m0", 224),
    "eva": ("vit_tiny_patch16_dinov3_qkvb", 256),
    "fasternet": ("fasternet_t0", 224),
    "fastvit": ("fastvit_t8", 256),
    "focalnet": ("focalnet_tiny_srf", 224),
    "gcvit": ("gcvit_xxtiny", 224),
    "gemma4_vit": ("gemma4_vit_167m", 192),
    "ghostnet": ("ghostnet_050", 224),
    "hardcorenas": ("hardcorenas_b", 224),
    "hgnet": ("hgnetv2_b0", 224),
    "hiera": ("hiera_tiny_224", 224),
    "hieradet_sam2": ("sam2_hiera_tiny", 224),
    "hrnet": ("hrnet_w18_small", 224),
    "iformer": ("iformer_t", 224),
    "inception_next": ("inception_next_atto", 224),
    "inception_resnet_v2": ("inception_resnet_v2", 299),
    "inception_v3": ("inception_v3", 299),
    "inception_v4": ("inception_v4", 299),
    "lcnetv2": ("lcnetv2_small", 224),
    "levit": ("levit_128s", 224),
    "lowformer": ("lowformer_b0", 224),
    "mambaout": ("mambaout_femto", 224),
    "maxxvit": ("maxvit_pico_rw_256", 256),
    "metaformer": ("poolformerv2_s12", 224),
    "mlp_mixer": ("gmlp_ti16_224", 224),
    "mobilenetv3": ("mobilenetv3_small_050", 224),
    "mobilenetv5": ("mobilenetv5_base", 256),
    "mobilevit": ("mobilevit_xxs", 256),
    "mvitv2": ("mvitv2_tiny", 224),
    "naflexvit": ("naflexvit_base_patch16_parfac_gap", 192),
    "nasnet": ("nasnetalarge", 331),
    "nest": ("nest_tiny", 224),
    "nextvit": ("nextvit_small", 224),
    "nfnet": ("nf_regnet_b0", 192),
    "pit": ("pit_ti_224", 224),
    "pnasnet": ("pnasnet5large", 331),
    "pvt_v2": ("pvt_v2_b0", 224),
    "qwen3_vit": ("qwen3_vit_88m", 768),
    "rdnet": ("rdnet_tiny", 224),
    "regnet": ("regnetx_002", 224),
    "repghost": ("repghostnet_050", 224),
    "repvit": ("repvit_m1", 224),
    "res2net": ("res2next50", 224),
    "resnest": ("resnest14d", 224),
    "resnet": ("resnet10t", 176),
    "resnetv2": ("resnetv2_18", 224),
    "rexnet": ("rexnet_100", 224),
    "selecsls": ("selecsls42", 224),
    "senet": ("legacy_seresnet18", 224),
    "sequencer": ("sequencer2d_s", 224),
    "shvit": ("shvit_s1", 224),
    "sknet": ("skresnet18", 224),
    "starnet": ("starnet_s050", 224),
    "swiftformer": ("swiftformer_xs", 224),
    "swin_transformer": ("swin_tiny_patch4_window7_224", 224),
    "swin_transformer_v2": ("swinv2_tiny_window16_256", 256),
    "swin_transformer_v2_cr": ("swinv2_cr_tiny_224", 224),
    "tiny_vit": ("tiny_vit_5m_224", 224),
    "tnt": ("tnt_s_legacy_patch16_224", 224),
    "tresnet": ("tresnet_m", 224),
    "twins": ("twins_svt_small", 224),
    "vgg": ("vgg11", 224),
    "visformer": ("visformer_tiny", 224),
    "vision_transformer": ("vit_tiny_patch16_224", 224),
    "vision_transformer_hybrid": ("vit_tiny_r_s16_p8_224", 224),
    "vision_transformer_relpos": ("vit_srelpos_small_patch16_224", 224),
    "vision_transformer_sam": ("samvit_base_patch16_224", 224),
    "vitamin": ("vitamin_small_224", 224),
    "volo": ("volo_d1_224", 224),
    "vovnet": ("ese_vovnet19b_slim_dw", 224),
    "xception": ("legacy_xception", 299),
    "xception_aligned": ("xception41p", 299),
    "xcit": ("xcit_nano_12_p8_224", 224),
}
"""By file: the model, and the side of its images: what it is made for, or less where a call would take seconds."""


def _case(name: str, side: int) -> ModuleCase:
    def make() -> Any:
        return found("timm.create_model")(name, pretrained=False)

    return ModuleCase("timm", f"{name}, {side}", make, normal((1, 3, side, side)), normal((2, 3, side, side)))


CASES: Final[tuple[ModuleCase, ...]] = tuple(_case(name, side) for name, side in MODELS.values())
EXCLUDED: Final[tuple[Excluded, ...]] = ()


def available() -> set[str]:
    """Return the names of the files that have models."""
    return {name for name, models in found("timm.models._registry._module_to_models").items() if models}


def covered() -> set[str]:
    """Return the names of the files of which a model is a case."""
    return set(MODELS)
