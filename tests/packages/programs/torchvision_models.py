"""torchvision writes its models to be scripted: one of each kind, and detectors, which work on lists and dicts."""

from __future__ import annotations

from keeping import main
from library_cases import chosen, part_of

from benchmarks.modules.torchvision_models import CASES

MODELS = """
    mobilenet_v3_small regnet_x_400mf resnet18 shufflenet_v2_x0_5 squeezenet1_1 efficientnet_b0 mnasnet0_5 swin_t
    quantized_mobilenet_v2 quantized_resnet18 googlenet vit_b_32 densenet121 convnext_tiny
    lraspp_mobilenet_v3_large r3d_18
    fasterrcnn_mobilenet_v3_large_320_fpn ssdlite320_mobilenet_v3_large maskrcnn_resnet50_fpn
""".split()
TRAINED = "mobilenet_v3_small resnet18 lraspp_mobilenet_v3_large ssdlite320_mobilenet_v3_large".split()

if __name__ == "__main__":
    parts = {case.name: part_of(case, needs="torchvision") for case in chosen(CASES, MODELS)}
    parts |= {f"{case.name}, trained": part_of(case, gradients=True) for case in chosen(CASES, TRAINED)}
    main(parts)
