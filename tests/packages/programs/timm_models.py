"""timm writes its models to be scripted: one of each file, the smallest, unless it takes many seconds."""

from __future__ import annotations

from keeping import main
from library_cases import part_of

from benchmarks.modules.timm_models import CASES, MODELS

SLOW = """
    deepseek_vit mobilenetv5 nasnet pnasnet qwen3_vit sequencer vision_transformer_hybrid vision_transformer_sam vitamin
    volo xception xception_aligned xcit
""".split()
"""Files whose smallest model takes more than five seconds to make and to call."""

if __name__ == "__main__":
    main({case.name: part_of(case) for file, case in zip(MODELS, CASES, strict=True) if file not in SLOW})
