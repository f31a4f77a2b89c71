"""torch_geometric generates the code of its layers for torch.jit.script, and scripts two classes at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from keeping import main, reloaded
from torch_geometric import nn
from torch_geometric.nn.pool.connect import ConnectOutput
from torch_geometric.nn.pool.select import SelectOutput

EDGES = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
BATCH = torch.tensor([0, 0, 1, 1])

LAYERS: dict[str, Callable[[], Any]] = {
    "APPNP": lambda: nn.APPNP(2, 0.1),
    "ARMAConv": lambda: nn.ARMAConv(8, 6),
    "ChebConv": lambda: nn.ChebConv(8, 6, K=2),
    "ClusterGCNConv": lambda: nn.ClusterGCNConv(8, 6),
    "EdgeConv": lambda: nn.EdgeConv(torch.nn.Linear(16, 6)),
    "EGConv": lambda: nn.EGConv(8, 8),
    "FiLMConv": lambda: nn.FiLMConv(8, 6),
    "GatedGraphConv": lambda: nn.GatedGraphConv(8, 2),
    "GCNConv": lambda: nn.GCNConv(8, 6),
    "GENConv": lambda: nn.GENConv(8, 6),
    "GINConv": lambda: nn.GINConv(torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU())),
    "GraphConv": lambda: nn.GraphConv(8, 6),
    "LEConv": lambda: nn.LEConv(8, 6),
    "LGConv": lambda: nn.LGConv(),
    "MFConv": lambda: nn.MFConv(8, 6),
    "ResGatedGraphConv": lambda: nn.ResGatedGraphConv(8, 6),
    "SAGEConv": lambda: nn.SAGEConv(8, 6),
    "SGConv": lambda: nn.SGConv(8, 6),
    "SSGConv": lambda: nn.SSGConv(8, 6, 0.1),
    "TAGConv": lambda: nn.TAGConv(8, 6),
}
MODELS: dict[str, Callable[[], Any]] = {
    "GCN": lambda: nn.GCN(8, 16, 2, 3),
    "GraphSAGE": lambda: nn.GraphSAGE(8, 16, 2, 3, jk="cat"),
    "GIN": lambda: nn.GIN(8, 16, 2, 3, norm="batch_norm"),
}
NORMS: dict[str, Callable[[], Any]] = {
    "BatchNorm": lambda: nn.BatchNorm(8),
    "DiffGroupNorm": lambda: nn.DiffGroupNorm(8, groups=2),
    "GraphNorm": lambda: nn.GraphNorm(8),
    "GraphSizeNorm": lambda: nn.GraphSizeNorm(),
    "InstanceNorm": lambda: nn.InstanceNorm(8),
    "LayerNorm": lambda: nn.LayerNorm(8),
    "MeanSubtractionNorm": lambda: nn.MeanSubtractionNorm(),
    "PairNorm": lambda: nn.PairNorm(),
}
AGGREGATIONS = ("Max", "Mean", "PowerMean", "Softmax", "Std", "Sum")


def scripted(make: Callable[[], Any], *others: torch.Tensor) -> Callable[[], Any]:
    def run() -> Any:
        module = torch.jit.script(make().eval())
        assert isinstance(module, torch.jit.ScriptModule)
        with torch.no_grad():
            return module(torch.randn(4, 8), *others)

    return run


def pooled(make: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        x, edges, _, batch, perm, score = torch.jit.script(make().eval())(torch.randn(4, 8), EDGES, None, BATCH)
        return x.detach(), edges, batch, perm, score.detach()

    return run


def archive() -> Any:
    module = reloaded(torch.jit.script(nn.GraphSAGE(8, 16, 2, 3, jk="cat").eval()))
    with torch.no_grad():
        return module(torch.randn(4, 8), EDGES)


def classes() -> Any:
    """The two classes that are scripted at import."""
    selected = SelectOutput(torch.tensor([0, 1]), 2, torch.tensor([0, 0]), 1)
    connected = ConnectOutput(EDGES)
    return selected.node_index, selected.num_clusters, selected.weight is None, connected.edge_index


if __name__ == "__main__":
    parts = {name: scripted(make, EDGES) for name, make in {**LAYERS, **MODELS}.items()}
    parts |= {name: scripted(make) for name, make in NORMS.items()}
    parts |= {f"{name}Aggregation": scripted(getattr(nn, f"{name}Aggregation"), BATCH) for name in AGGREGATIONS}
    parts |= {"TopKPooling": pooled(lambda: nn.TopKPooling(8)), "SAGPooling": pooled(lambda: nn.SAGPooling(8))}
    parts |= {"classes": classes, "archive": archive}
    main(parts)
