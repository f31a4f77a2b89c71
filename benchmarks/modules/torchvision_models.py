"""All models of ``torchvision.models.list_models()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks.modules.case import BOTH, INFERENCE, Excluded, Modes, ModuleCase, found, normal

SIDES: Final = (64, 224)
"""Of the images that are classified, one at a time."""

CLASSIFICATION: Final = """
    alexnet
    convnext_base convnext_large convnext_small convnext_tiny
    densenet121 densenet161 densenet169 densenet201
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 efficientnet_b6
    efficientnet_b7 efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s
    googlenet inception_v3 maxvit_t
    mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3
    mobilenet_v2 mobilenet_v3_large mobilenet_v3_small
    regnet_x_16gf regnet_x_1_6gf regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf
    regnet_y_128gf regnet_y_16gf regnet_y_1_6gf regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf
    resnet101 resnet152 resnet18 resnet34 resnet50
    resnext101_32x8d resnext101_64x4d resnext50_32x4d
    shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
    squeezenet1_0 squeezenet1_1
    swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t
    vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn
    vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32
    wide_resnet101_2 wide_resnet50_2
""".split()
QUANTIZED: Final = """
    quantized_googlenet quantized_inception_v3 quantized_mobilenet_v2 quantized_mobilenet_v3_large quantized_resnet18
    quantized_resnet50 quantized_resnext101_32x8d quantized_resnext101_64x4d quantized_shufflenet_v2_x0_5
    quantized_shufflenet_v2_x1_0 quantized_shufflenet_v2_x1_5 quantized_shufflenet_v2_x2_0
""".split()
SEGMENTATION: Final = """
    deeplabv3_mobilenet_v3_large deeplabv3_resnet101 deeplabv3_resnet50 fcn_resnet101 fcn_resnet50
    lraspp_mobilenet_v3_large
""".split()
DETECTION: Final = """
    fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_mobilenet_v3_large_fpn fasterrcnn_resnet50_fpn
    fasterrcnn_resnet50_fpn_v2 fcos_resnet50_fpn keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn
    maskrcnn_resnet50_fpn_v2 retinanet_resnet50_fpn retinanet_resnet50_fpn_v2 ssd300_vgg16
    ssdlite320_mobilenet_v3_large
""".split()
VIDEO: Final = {
    **dict.fromkeys(("mc3_18", "r2plus1d_18", "r3d_18"), (1, 3, 8, 64, 64)),
    **dict.fromkeys(("swin3d_b", "swin3d_s", "swin3d_t"), (1, 3, 8, 64, 64)),
    "s3d": (1, 3, 16, 64, 64),
    **dict.fromkeys(("mvit_v1_b", "mvit_v2_s"), (1, 3, 16, 224, 224)),
}
FLOW: Final = ("raft_large", "raft_small")

OTHER_SIDES: Final = {"inception_v3": (96, 224), "quantized_inception_v3": (96, 224), "maxvit_t": (224,)}
"""Inception takes no image below 75 pixels, and the windows of MaxViT divide no image of 64."""
_SIZED: Final = ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14")
"""These have positions for one size. The patches of vit_h_14 are 14 wide, those of the others divide 64."""


def _maker(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: found("torchvision.models.get_model")(name, weights=None, **options)


def _image(side: int, batch: int = 1) -> Callable[[], tuple[Tensor, ...]]:
    return normal((batch, 3, side, side))


def _scores(result: Any) -> Any:
    """Return the main scores of a network with auxiliary ones. The compiled network returns a tuple in every mode."""
    if isinstance(result, tuple):
        return [each for each in result if each is not None]
    return [result]


def _first_scores(result: Any) -> Any:
    return _scores(result)[:1]


def _classifiers() -> Iterator[ModuleCase]:
    for name in (*CLASSIFICATION, *QUANTIZED):
        has_auxiliary = name.endswith(("googlenet", "inception_v3"))
        modes: Modes = INFERENCE if name in QUANTIZED else BOTH
        for side in OTHER_SIDES.get(name, SIDES):
            options: dict[str, Any] = {"quantize": True} if name in QUANTIZED else {}
            if name in _SIZED:
                side = side // 14 * 14 if name == "vit_h_14" else side
                options["image_size"] = side
            if has_auxiliary and name not in QUANTIZED:
                options["init_weights"] = False
            yield ModuleCase(
                "torchvision",
                f"{name}, {side}",
                _maker(name, **options),
                _image(side),
                _image(side, batch=2),  # a batch norm of one number has no variance
                modes=modes,
                result=_first_scores if has_auxiliary else lambda result: result,
            )


def _detections(result: Any) -> Any:
    """Return the losses or the detections of a detector, by its mode. The compiled detector returns both in every
    mode."""
    if isinstance(result, tuple):
        losses, detections = result
        return losses or detections
    return result


def _photographs() -> tuple[Any, ...]:
    return ([torch.rand(3, 96, 128), torch.rand(3, 112, 96)],)


def _labelled(name: str) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        boxes = torch.tensor([[5.0, 5.0, 60.0, 60.0], [20.0, 30.0, 80.0, 85.0]])
        target = {"boxes": boxes, "labels": torch.tensor([1, 2])}
        if name.startswith("mask"):
            target["masks"] = torch.ones(2, 96, 96, dtype=torch.uint8)
        if name.startswith("keypoint"):
            target["labels"] = torch.tensor([1, 1])
            target["keypoints"] = torch.cat([torch.rand(2, 17, 2) * 40 + 20, torch.ones(2, 17, 1)], 2)
        images = [torch.rand(3, 96, 96), torch.rand(3, 96, 96)]
        return images, [{key: value.clone() for key, value in target.items()} for _ in images]

    return make


def _detectors() -> Iterator[ModuleCase]:
    for name in DETECTION:
        sizes = {} if name.startswith("ssd") else {"min_size": 128, "max_size": 160}
        make = _maker(name, weights_backbone=None, **sizes)
        yield ModuleCase("torchvision", name, make, _photographs, _labelled(name), result=_detections)


def _others() -> Iterator[ModuleCase]:
    for name in SEGMENTATION:
        make = _maker(name, weights_backbone=None)
        yield ModuleCase("torchvision", f"{name}, 64", make, _image(64), _image(64, batch=2))
    for name, shape in VIDEO.items():
        yield ModuleCase("torchvision", name, _maker(name), normal(shape), normal((2, *shape[1:])))
    for name in FLOW:
        pair = normal((1, 3, 128, 128), (1, 3, 128, 128))
        yield ModuleCase("torchvision", f"{name}, 128", _maker(name), pair, lambda pair=pair: (*pair(), 4))


CASES: Final[tuple[ModuleCase, ...]] = (*_classifiers(), *_detectors(), *_others())
COVERED: Final = frozenset((*CLASSIFICATION, *QUANTIZED, *SEGMENTATION, *DETECTION, *VIDEO, *FLOW))
EXCLUDED: Final[tuple[Excluded, ...]] = ()


def available() -> set[str]:
    """Return the names that torchvision lists."""
    return set(found("torchvision.models.list_models")())


def covered() -> set[str]:
    """Return the names of the models that are cases."""
    return set(COVERED)
