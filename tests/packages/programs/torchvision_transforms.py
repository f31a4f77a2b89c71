"""torchvision's transforms and presets for images and video, and its operators, scripted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from keeping import compared, main
from torch import Tensor, nn
from torchvision import ops, transforms as T
from torchvision.transforms import InterpolationMode, functional as F
from torchvision.transforms._presets import (
    ImageClassification,
    ObjectDetection,
    OpticalFlow,
    SemanticSegmentation,
    VideoClassification,
)

TRANSFORMS: dict[str, Callable[[], Any]] = {
    "AutoAugment": T.AutoAugment,
    "RandAugment": T.RandAugment,
    "TrivialAugmentWide": T.TrivialAugmentWide,
    "AugMix": T.AugMix,
    "CenterCrop": lambda: T.CenterCrop(20),
    "ColorJitter": lambda: T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "ConvertImageDtype": lambda: T.ConvertImageDtype(torch.float32),
    "ElasticTransform": T.ElasticTransform,
    "FiveCrop": lambda: T.FiveCrop(12),
    "GaussianBlur": lambda: T.GaussianBlur(3),
    "Grayscale": lambda: T.Grayscale(3),
    "Pad": lambda: T.Pad((1, 2), padding_mode="reflect"),
    "RandomAdjustSharpness": lambda: T.RandomAdjustSharpness(2.0, p=1.0),
    "RandomAffine": lambda: T.RandomAffine(30, (0.1, 0.1), (0.8, 1.2), 10),
    "RandomAutocontrast": lambda: T.RandomAutocontrast(p=1.0),
    "RandomCrop": lambda: T.RandomCrop(20, padding=4),
    "RandomEqualize": lambda: T.RandomEqualize(p=1.0),
    "RandomErasing": lambda: T.RandomErasing(p=1.0),
    "RandomGrayscale": lambda: T.RandomGrayscale(p=1.0),
    "RandomHorizontalFlip": T.RandomHorizontalFlip,
    "RandomInvert": lambda: T.RandomInvert(p=1.0),
    "RandomPerspective": lambda: T.RandomPerspective(p=1.0),
    "RandomPosterize": lambda: T.RandomPosterize(3, p=1.0),
    "RandomResizedCrop": lambda: T.RandomResizedCrop(16, antialias=True),
    "RandomRotation": lambda: T.RandomRotation(40),
    "RandomSolarize": lambda: T.RandomSolarize(128, p=1.0),
    "RandomVerticalFlip": T.RandomVerticalFlip,
    "Resize": lambda: T.Resize(18, antialias=True),
    "Resize, nearest": lambda: T.Resize((18, 22), InterpolationMode.NEAREST),
    "TenCrop": lambda: T.TenCrop(12),
    "pipeline": lambda: nn.Sequential(
        T.RandomResizedCrop(24, antialias=True),
        T.RandomHorizontalFlip(),
        T.ColorJitter(0.2, 0.2),
        T.ConvertImageDtype(torch.float32),
        T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ),
    "random choice": lambda: T.RandomApply(nn.ModuleList([T.ColorJitter(0.3), T.GaussianBlur(3)]), p=0.5),
}
PRESETS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "ImageClassification": (lambda: ImageClassification(crop_size=24, resize_size=28), ((3, 40, 36),)),
    "ObjectDetection": (ObjectDetection, ((3, 40, 36),)),
    "SemanticSegmentation": (lambda: SemanticSegmentation(resize_size=28), ((3, 40, 36),)),
    "VideoClassification": (
        lambda: VideoClassification(crop_size=(20, 20), resize_size=(24, 24)),
        ((4, 3, 40, 36),),
    ),
    "OpticalFlow": (OpticalFlow, ((3, 40, 40), (3, 40, 40))),
}


def image(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape or (3, 30, 34), dtype=torch.uint8)


def transformed(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: compared(make(), (image(),), (image(2, 3, 26, 31),), needs="torchvision")


def preset(make: Callable[[], Any], shapes: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: compared(make(), tuple(image(*shape) for shape in shapes), needs="torchvision")


def boxes(count: int = 12) -> Tensor:
    corners = torch.rand(count, 2) * 20
    return torch.cat([corners, corners + 4 + torch.rand(count, 2) * 10], 1)


def detected(image: Tensor, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    kept = ops.batched_nms(boxes, scores, torch.arange(boxes.size(0)) % 2, 0.3)
    clipped = ops.clip_boxes_to_image(boxes[kept], (30, 34))
    pooled = ops.roi_align(image, [clipped], output_size=3, spatial_scale=1.0, sampling_ratio=2)
    return pooled, ops.box_iou(clipped, clipped), ops.generalized_box_iou(clipped, boxes)


def pooled(image: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rois = torch.cat([torch.zeros(boxes.size(0), 1), boxes], 1)
    return (
        ops.roi_pool(image, rois, (3, 3), 0.5),
        ops.ps_roi_pool(image, rois, 1, 1.0),
        ops.masks_to_boxes(image[0] > image[0].mean()),
    )


def losses(found: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        ops.sigmoid_focal_loss(found, (wanted > 10).float(), reduction="mean"),
        ops.generalized_box_iou_loss(found, wanted),
        ops.distance_box_iou_loss(found, wanted, "sum"),
        ops.complete_box_iou_loss(found, wanted, "mean"),
    )


def edited(x: Tensor) -> Tensor:
    y = F.adjust_hue(F.adjust_gamma(x, 0.9), 0.1)
    y = F.affine(y, 10.0, [1, 2], 1.1, [3.0, 2.0])
    return F.perspective(
        F.rotate(y, 20.0, expand=True), [[0, 0], [9, 0], [9, 9], [0, 9]], [[1, 1], [8, 0], [9, 8], [0, 9]]
    )


MODULES: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "ops.DeformConv2d": (
        lambda: ops.DeformConv2d(3, 4, 3),
        lambda: (torch.randn(2, 3, 8, 8), torch.randn(2, 18, 6, 6)),
    ),
    "ops.FeaturePyramidNetwork": (
        lambda: ops.FeaturePyramidNetwork([4, 8], 6),
        lambda: ({"a": torch.randn(1, 4, 16, 16), "b": torch.randn(1, 8, 8, 8)},),
    ),
    "ops.MultiScaleRoIAlign": (
        lambda: ops.MultiScaleRoIAlign(["a", "b"], 3, 2),
        lambda: ({"a": torch.randn(1, 4, 16, 16), "b": torch.randn(1, 4, 8, 8)}, [boxes()], [(32, 32)]),
    ),
    "ops.SqueezeExcitation": (lambda: ops.SqueezeExcitation(8, 4), lambda: (torch.randn(2, 8, 5, 5),)),
    "ops.StochasticDepth": (lambda: ops.StochasticDepth(0.5, "row"), lambda: (torch.randn(6, 8),)),
    "ops.DropBlock2d": (lambda: ops.DropBlock2d(0.3, 3), lambda: (torch.randn(2, 4, 9, 9),)),
    "ops.MLP": (lambda: ops.MLP(8, [16, 4], dropout=0.2), lambda: (torch.randn(5, 8),)),
    "ops.FrozenBatchNorm2d": (lambda: ops.FrozenBatchNorm2d(4), lambda: (torch.randn(2, 4, 5, 5),)),
}

if __name__ == "__main__":
    main(
        {
            **{name: transformed(make) for name, make in TRANSFORMS.items()},
            **{f"preset {name}": preset(*case) for name, case in PRESETS.items()},
            **{
                name: lambda make=make, inputs=inputs: compared(make(), inputs(), needs="torchvision")
                for name, (make, inputs) in MODULES.items()
            },
            "functional": lambda: compared(edited, (image(),), archive=False),
            "detection": lambda: compared(
                detected, (torch.randn(1, 4, 30, 34), boxes(), torch.rand(12)), archive=False
            ),
            "pooling": lambda: compared(pooled, (torch.randn(1, 9, 30, 34), boxes()), archive=False),
            "losses": lambda: compared(losses, (boxes(), boxes()), archive=False),
        }
    )
