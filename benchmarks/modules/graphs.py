"""Layers of torch_geometric, on a graph of 200 nodes with 32 features and 1,000 edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor, nn

from benchmarks.modules.case import Excluded, ModuleCase, found

NODES: Final = 200
EDGES: Final = 1000
WIDTH: Final = 32


def _edges() -> Tensor:
    return torch.randint(0, NODES, (2, EDGES))


def _graph(*more: Callable[[], Any]) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(NODES, WIDTH), _edges(), *(make() for make in more))


_PLAIN: Final = _graph()


def _attributes() -> Tensor:
    return torch.randn(EDGES, 8)


def _kinds(count: int, size: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(0, count, (size,))


def _positions() -> Tensor:
    return torch.randn(NODES, 3)


def _perceptron(inputs: int, outputs: int = WIDTH) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


def _layer(
    kind: str,
    *arguments: Any,
    inputs: Callable[[], tuple[Any, ...]] = _PLAIN,
    differentiated: tuple[int, ...] = (0,),
    **keywords: Any,
) -> ModuleCase:
    """Return a case of a layer. Arguments that are functions make modules: each measurement has its own."""

    def made(value: Any) -> Any:
        return value() if callable(value) else value

    def make() -> Any:
        own = {name: made(value) for name, value in keywords.items()}
        return found(f"torch_geometric.nn.{kind}")(*map(made, arguments), **own)

    return ModuleCase("torch_geometric", kind, make, inputs, differentiated=differentiated)


class WithTwo(nn.Module):
    """A layer as a model calls it: ``torch.jit.script`` compiles an overloaded ``forward`` where it is called, and only
    there."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.layer(x, y)


class WithThree(nn.Module):
    """A model that calls a layer with three tensors, for the same reason as :class:`WithTwo`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return self.layer(x, y, z)


def _overloaded(
    kind: str, *arguments: Any, caller: type[nn.Module] = WithTwo, inputs: Callable[[], tuple[Any, ...]] = _PLAIN
) -> ModuleCase:
    layer = _layer(kind, *arguments, inputs=inputs)
    return replace(layer, make=lambda: caller(layer.make()))


def _two_features() -> tuple[Any, ...]:
    return torch.randn(NODES, WIDTH), torch.randn(NODES, WIDTH), _edges()


_CONVOLUTIONS: Final = (
    _layer("SimpleConv"),
    _layer("GCNConv", WIDTH, WIDTH),
    _layer("ChebConv", WIDTH, WIDTH, 3),
    _layer("SAGEConv", WIDTH, WIDTH),
    _layer("GraphConv", WIDTH, WIDTH),
    _layer("GatedGraphConv", WIDTH, 3),
    _layer("ResGatedGraphConv", WIDTH, WIDTH),
    _overloaded("GATConv", WIDTH, 8, 4),
    _overloaded("GATv2Conv", WIDTH, 8, 4),
    _overloaded("TransformerConv", WIDTH, 8, 4),
    _layer("AGNNConv"),
    _layer("TAGConv", WIDTH, WIDTH),
    _layer("GINConv", lambda: _perceptron(WIDTH)),
    _layer("GINEConv", lambda: _perceptron(WIDTH), edge_dim=8, inputs=_graph(_attributes)),
    _layer("ARMAConv", WIDTH, WIDTH),
    _layer("SGConv", WIDTH, WIDTH, 2),
    _layer("SSGConv", WIDTH, WIDTH, 0.1, 2),
    _layer("APPNP", 5, 0.1),
    _layer("MFConv", WIDTH, WIDTH),
    _layer("RGCNConv", WIDTH, WIDTH, 4, inputs=_graph(_kinds(4, EDGES))),
    _layer("FastRGCNConv", WIDTH, WIDTH, 4, inputs=_graph(_kinds(4, EDGES))),
    _overloaded("RGATConv", WIDTH, WIDTH, 4, caller=WithThree, inputs=_graph(_kinds(4, EDGES))),
    _layer("SignedConv", WIDTH, WIDTH, first_aggr=True, inputs=_graph(_edges)),
    _layer("DNAConv", WIDTH, 4, inputs=lambda: (torch.randn(NODES, 3, WIDTH), _edges())),
    _layer(
        "PointNetConv",
        lambda: _perceptron(WIDTH + 3),
        inputs=lambda: (torch.randn(NODES, WIDTH), _positions(), _edges()),
    ),
    _layer("GMMConv", WIDTH, WIDTH, 8, 3, inputs=_graph(_attributes)),
    _layer("NNConv", WIDTH, 8, lambda: _perceptron(8, WIDTH * 8), inputs=_graph(_attributes)),
    _layer("CGConv", WIDTH, 8, inputs=_graph(_attributes)),
    _layer("EdgeConv", lambda: _perceptron(2 * WIDTH)),
    _layer(
        "PPFConv",
        lambda: _perceptron(WIDTH + 4),
        inputs=lambda: (torch.randn(NODES, WIDTH), _positions(), _positions(), _edges()),
    ),
    _layer("FeaStConv", WIDTH, WIDTH, 4),
    _layer(
        "PointTransformerConv",
        WIDTH,
        WIDTH,
        inputs=lambda: (torch.randn(NODES, WIDTH), _positions(), _edges()),
    ),
    _layer("HypergraphConv", WIDTH, WIDTH),
    _layer("LEConv", WIDTH, WIDTH),
    _layer("ClusterGCNConv", WIDTH, WIDTH),
    _layer("GENConv", WIDTH, WIDTH),
    _layer(
        "GCN2Conv",
        WIDTH,
        0.1,
        inputs=_two_features,
    ),
    _layer(
        "PNAConv",
        WIDTH,
        WIDTH,
        ["mean", "max", "std"],
        ["identity", "amplification"],
        lambda: torch.tensor([10, 30, 60, 60, 30, 10]),
    ),
    _layer("WLConvContinuous"),
    _layer("FiLMConv", WIDTH, WIDTH),
    _layer("SuperGATConv", WIDTH, 8, 4),
    _overloaded("FAConv", WIDTH, caller=WithThree, inputs=_two_features),
    _layer("EGConv", WIDTH, WIDTH, num_heads=4),
    _layer("PDNConv", WIDTH, WIDTH, 8, 16, inputs=_graph(_attributes)),
    _layer("GeneralConv", WIDTH, WIDTH),
    _layer(
        "HEATConv",
        *(WIDTH, WIDTH, 3, 4, 8, 8, 8),
        inputs=_graph(_kinds(3, NODES), _kinds(4, EDGES), _attributes),
    ),
    _layer("LGConv"),
    _layer(
        "PointGNNConv",
        lambda: _perceptron(WIDTH, 3),
        lambda: _perceptron(WIDTH + 3),
        lambda: _perceptron(WIDTH),
        inputs=lambda: (torch.randn(NODES, WIDTH), _positions(), _edges()),
    ),
    _layer("GPSConv", WIDTH, lambda: found("torch_geometric.nn.GCNConv")(WIDTH, WIDTH), 4),
    _layer("AntiSymmetricConv", WIDTH),
    _layer("DirGNNConv", lambda: found("torch_geometric.nn.SAGEConv")(WIDTH, WIDTH)),
    _layer("MixHopConv", WIDTH, WIDTH),
)


def _batched() -> tuple[Any, ...]:
    return torch.randn(NODES, WIDTH), torch.arange(NODES) // 25


def _normalization(kind: str, *arguments: Any, **keywords: Any) -> ModuleCase:
    return _layer(kind, *arguments, inputs=lambda: (torch.randn(NODES, WIDTH),), **keywords)


_NORMALIZATIONS: Final = (
    _normalization("BatchNorm", WIDTH),
    _normalization("InstanceNorm", WIDTH),
    _normalization("LayerNorm", WIDTH),
    _normalization("GraphNorm", WIDTH),
    _normalization("GraphSizeNorm"),
    _normalization("PairNorm"),
    _normalization("MeanSubtractionNorm"),
    _normalization("DiffGroupNorm", WIDTH, 4),
    _layer("MessageNorm", True, inputs=lambda: (torch.randn(NODES, WIDTH), torch.randn(NODES, WIDTH))),
)
_AGGREGATIONS: Final = (
    *(
        _layer(f"{kind}Aggregation", inputs=_batched)
        for kind in ("Sum", "Mean", "Max", "Min", "Mul", "Var", "Std", "Softmax", "PowerMean", "Median")
    ),
    _layer("QuantileAggregation", 0.3, inputs=_batched),
    _layer("VariancePreservingAggregation", inputs=_batched),
    _layer("LSTMAggregation", WIDTH, WIDTH, inputs=_batched),
    _layer("GRUAggregation", WIDTH, WIDTH, inputs=_batched),
    _layer("Set2Set", WIDTH, 3, inputs=_batched),
    _layer("SortAggregation", 10, inputs=_batched),
    _layer("AttentionalAggregation", lambda: _perceptron(WIDTH, 1), inputs=_batched),
    _layer("DeepSetsAggregation", lambda: _perceptron(WIDTH), lambda: _perceptron(WIDTH), inputs=_batched),
    _layer("SetTransformerAggregation", WIDTH, heads=4, inputs=_batched),
)
_POOLING: Final = tuple(
    _layer(kind, WIDTH, inputs=_graph(lambda: None, lambda: torch.arange(NODES) // 25))
    for kind in ("TopKPooling", "SAGPooling")
)
_NETWORKS: Final = (
    _layer("GCN", WIDTH, 64, 3, 10),
    _layer("GraphSAGE", WIDTH, 64, 3, 10, jk="cat"),
    _layer("GIN", WIDTH, 64, 3, 10, norm="batch_norm"),
    _layer("GAT", WIDTH, 64, 3, 10, heads=4),
    _layer("MLP", [WIDTH, 64, 64, 10], inputs=lambda: (torch.randn(NODES, WIDTH),)),
    _layer(
        "DenseGCNConv",
        WIDTH,
        WIDTH,
        inputs=lambda: (torch.randn(8, 25, WIDTH), torch.randint(0, 2, (8, 25, 25)).float()),
    ),
    _layer(
        "DenseSAGEConv",
        WIDTH,
        WIDTH,
        inputs=lambda: (torch.randn(8, 25, WIDTH), torch.randint(0, 2, (8, 25, 25)).float()),
    ),
)

CASES: Final[tuple[ModuleCase, ...]] = (*_CONVOLUTIONS, *_NORMALIZATIONS, *_AGGREGATIONS, *_POOLING, *_NETWORKS)
EXCLUDED: Final = (
    Excluded("MessagePassing", "abstract base"),
    *(Excluded(f"CuGraph{kind}Conv", "needs CUDA") for kind in ("SAGE", "GAT", "RGCN")),
    Excluded("FusedGATConv", "needs CUDA"),
    *(Excluded(kind, "needs torch_cluster") for kind in ("GravNetConv", "DynamicEdgeConv", "XConv")),
    Excluded("SplineConv", "needs torch_spline_conv"),
    Excluded("PANConv", "needs torch_sparse"),
    Excluded("WLConv", "hashes colors in Python: no tensor computation"),
    Excluded("HGTConv", "calls with dictionaries of types"),
    Excluded("HANConv", "calls with dictionaries of types"),
    Excluded("HeteroConv", "calls with dictionaries of types"),
    Excluded("MeshCNNConv", "for meshes with four neighbors of each edge alone"),
)


def available() -> set[str]:
    """Return the names of all convolutions."""
    return set(found("torch_geometric.nn.conv.__all__"))


def covered() -> set[str]:
    """Return the names of the convolutions that are cases."""
    return {case.name for case in _CONVOLUTIONS}
