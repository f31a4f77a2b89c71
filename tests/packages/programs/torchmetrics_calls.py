"""torchmetrics scripts its metrics in its own tests, and saves them; its functions are traced as parts of models.

A metric that is scripted cannot be called: its ``forward`` is marked as unused, and looks for Python's state in the
compiled module. That is so for ``torch.jit`` too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchmetrics.functional as F
from keeping import compared, main, reloaded
from torch import Tensor
from torchmetrics import classification as C, image as I, regression as R, retrieval as Q
from torchmetrics.aggregation import MaxMetric, MeanMetric, MinMetric, SumMetric


def labels(count: int = 24) -> tuple[Tensor, ...]:
    return torch.randint(0, 4, (count,)), torch.randint(0, 4, (count,))


def scores(count: int = 24) -> tuple[Tensor, ...]:
    return torch.softmax(torch.randn(count, 4), -1), torch.randint(0, 4, (count,))


def binary(count: int = 24) -> tuple[Tensor, ...]:
    return torch.rand(count), torch.randint(0, 2, (count,))


def multilabel(count: int = 24) -> tuple[Tensor, ...]:
    return torch.rand(count, 3), torch.randint(0, 2, (count, 3))


def numbers(count: int = 24) -> tuple[Tensor, ...]:
    x = torch.rand(count) + 0.1
    return x, x + 0.2 * torch.rand(count)


def images() -> tuple[Tensor, ...]:
    x = torch.rand(2, 3, 48, 48)
    return x, (x + 0.1 * torch.rand_like(x)).clamp(0, 1)


def ranked(count: int = 24) -> tuple[Tensor, ...]:
    return torch.rand(count), torch.randint(0, 2, (count,)), torch.arange(count) // 6


def single(count: int = 24) -> tuple[Tensor, ...]:
    return (torch.randn(count),)


Case = tuple[Callable[[], Any], Callable[[], tuple[Tensor, ...]]]
METRICS: dict[str, Case] = {
    "BinaryAccuracy": (C.BinaryAccuracy, binary),
    "MulticlassAccuracy": (lambda: C.MulticlassAccuracy(4), scores),
    "MulticlassAccuracy, labels": (lambda: C.MulticlassAccuracy(4, average="micro"), labels),
    "MultilabelAccuracy": (lambda: C.MultilabelAccuracy(3), multilabel),
    "BinaryF1Score": (C.BinaryF1Score, binary),
    "MulticlassF1Score": (lambda: C.MulticlassF1Score(4), scores),
    "MulticlassPrecision": (lambda: C.MulticlassPrecision(4), scores),
    "MulticlassRecall": (lambda: C.MulticlassRecall(4), scores),
    "MulticlassSpecificity": (lambda: C.MulticlassSpecificity(4), scores),
    "MulticlassConfusionMatrix": (lambda: C.MulticlassConfusionMatrix(4), scores),
    "MulticlassCohenKappa": (lambda: C.MulticlassCohenKappa(4), scores),
    "MulticlassMatthewsCorrCoef": (lambda: C.MulticlassMatthewsCorrCoef(4), scores),
    "MulticlassJaccardIndex": (lambda: C.MulticlassJaccardIndex(4), scores),
    "MulticlassStatScores": (lambda: C.MulticlassStatScores(4), scores),
    "MulticlassHammingDistance": (lambda: C.MulticlassHammingDistance(4), scores),
    "MulticlassAUROC, binned": (lambda: C.MulticlassAUROC(4, thresholds=5), scores),
    "BinaryAUROC, binned": (lambda: C.BinaryAUROC(thresholds=5), binary),
    "BinaryAveragePrecision, binned": (lambda: C.BinaryAveragePrecision(thresholds=5), binary),
    "BinaryCalibrationError": (C.BinaryCalibrationError, binary),
    "BinaryHingeLoss": (C.BinaryHingeLoss, binary),
    "MeanSquaredError": (R.MeanSquaredError, numbers),
    "MeanAbsoluteError": (R.MeanAbsoluteError, numbers),
    "MeanAbsolutePercentageError": (R.MeanAbsolutePercentageError, numbers),
    "SymmetricMeanAbsolutePercentageError": (R.SymmetricMeanAbsolutePercentageError, numbers),
    "MeanSquaredLogError": (R.MeanSquaredLogError, numbers),
    "ExplainedVariance": (R.ExplainedVariance, numbers),
    "R2Score": (R.R2Score, numbers),
    "PearsonCorrCoef": (R.PearsonCorrCoef, numbers),
    "SpearmanCorrCoef": (R.SpearmanCorrCoef, numbers),
    "CosineSimilarity": (R.CosineSimilarity, lambda: (torch.randn(6, 5), torch.randn(6, 5))),
    "LogCoshError": (R.LogCoshError, numbers),
    "TweedieDevianceScore": (lambda: R.TweedieDevianceScore(1.5), numbers),
    "MinkowskiDistance": (lambda: R.MinkowskiDistance(3.0), numbers),
    "ConcordanceCorrCoef": (R.ConcordanceCorrCoef, numbers),
    "KLDivergence": (R.KLDivergence, lambda: (scores()[0], scores()[0])),
    "PeakSignalNoiseRatio": (lambda: I.PeakSignalNoiseRatio(data_range=1.0), images),
    "StructuralSimilarityIndexMeasure": (lambda: I.StructuralSimilarityIndexMeasure(data_range=1.0), images),
    "UniversalImageQualityIndex": (I.UniversalImageQualityIndex, images),
    "TotalVariation": (I.TotalVariation, lambda: images()[:1]),
    "RetrievalMRR": (Q.RetrievalMRR, ranked),
    "RetrievalMAP": (Q.RetrievalMAP, ranked),
    "MeanMetric": (MeanMetric, single),
    "SumMetric": (SumMetric, single),
    "MaxMetric": (MaxMetric, single),
    "MinMetric": (MinMetric, single),
}
FUNCTIONS: dict[str, Case] = {
    "accuracy": (lambda: F.classification.multiclass_accuracy, lambda: (*labels(), 4)),
    "confusion_matrix": (lambda: F.classification.multiclass_confusion_matrix, lambda: (*labels(), 4)),
    "binary_auroc": (lambda: F.classification.binary_auroc, binary),
    "mean_squared_error": (lambda: F.mean_squared_error, numbers),
    "mean_absolute_error": (lambda: F.mean_absolute_error, numbers),
    "r2_score": (lambda: F.r2_score, numbers),
    "pearson_corrcoef": (lambda: F.pearson_corrcoef, numbers),
    "spearman_corrcoef": (lambda: F.spearman_corrcoef, numbers),
    "explained_variance": (lambda: F.explained_variance, numbers),
    "cosine_similarity": (lambda: F.cosine_similarity, lambda: (torch.randn(6, 5), torch.randn(6, 5))),
    "pairwise_cosine_similarity": (
        lambda: F.pairwise_cosine_similarity,
        lambda: (torch.randn(6, 5), torch.randn(4, 5)),
    ),
    "pairwise_euclidean_distance": (
        lambda: F.pairwise_euclidean_distance,
        lambda: (torch.randn(6, 5), torch.randn(4, 5)),
    ),
    "image_gradients": (lambda: F.image_gradients, lambda: images()[:1]),
    "signal_noise_ratio": (lambda: F.signal_noise_ratio, lambda: (torch.randn(2, 80), torch.randn(2, 80))),
    "scale_invariant_signal_distortion_ratio": (
        lambda: F.scale_invariant_signal_distortion_ratio,
        lambda: (torch.randn(2, 80), torch.randn(2, 80)),
    ),
    "retrieval_reciprocal_rank": (lambda: F.retrieval_reciprocal_rank, binary),
}


def scripted(make: Callable[[], Any], inputs: Callable[[], tuple[Tensor, ...]]) -> Callable[[], Any]:
    """Compile a metric, save it and load it again."""

    def run() -> Any:
        compiled = torch.jit.script(make())
        reloaded(compiled)
        try:
            return compiled(*inputs())
        except Exception:
            return "it cannot be called"

    return run


def traced(make: Callable[[], Any], inputs: Callable[[], tuple[Any, ...]]) -> Callable[[], Any]:
    def run() -> Any:
        batch, *others = inputs(), inputs()
        tensors = tuple(each for each in batch if isinstance(each, Tensor))
        rest = batch[len(tensors) :]
        function = make()

        def measured(*tensors: Tensor) -> Any:
            return function(*tensors, *rest)

        return compared(
            measured,
            tensors,
            *(other[: len(tensors)] for other in others),
            compile=lambda each: torch.jit.trace(each, tensors, check_trace=False),
            archive=False,
        )

    return run


class Trained(torch.nn.Module):
    """A model that returns its loss and a measure of its scores, as Lightning's modules do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(5, 4)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.layer(x)
        return torch.nn.functional.cross_entropy(scores, y), F.classification.multiclass_f1_score(scores, y, 4)


def trained() -> Any:
    inputs = torch.randn(12, 5), torch.randint(0, 4, (12,))
    return compared(
        Trained(), inputs, compile=lambda each: torch.jit.trace(each, inputs, check_trace=False), gradients=True
    )


if __name__ == "__main__":
    main(
        {
            **{f"{name}, scripted": scripted(*case) for name, case in METRICS.items()},
            **{f"{name}, traced": traced(*case) for name, case in FUNCTIONS.items()},
            "model with a measure": trained,
        }
    )
