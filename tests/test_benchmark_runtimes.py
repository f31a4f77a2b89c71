"""``python -m benchmarks --only runtimes``: networks run through the measuring code, with and without the packages."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import rounded_weights
from benchmarks.peers import Unavailable
from benchmarks.runtimes import measure, peak, peers
from benchmarks.runtimes.networks import NETWORKS, prepared
from benchmarks.runtimes.peers import PACKAGES, Subject

ROOT = Path(__file__).parent.parent


def test_names_are_unique() -> None:
    assert len({network.name for network in NETWORKS}) == len(NETWORKS)


def test_every_package_is_pinned_in_the_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = text.partition("\nruntimes = [")[2].partition("]")[0]
    assert [each.strip(' "') for each in extra.split(",")] == [f"{a}=={b}" for a, b in PACKAGES.items()]


def test_a_missing_package_is_an_empty_entry_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnxruntime", "openvino"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(peak, "gigaflops", lambda: 100.0)
    [row] = measure.run(3, NETWORKS[:1], 0.0)
    message = "onnxruntime is not installed: pip install 'rekindle[runtimes]'"
    assert row.peers["onnxruntime"].unavailable == message
    assert measure.remarks([row])[0] == f"{row.network}: onnxruntime: {message}"
    assert {name for name, timed in row.peers.items() if timed.call > 0} == {"eager", "torch.jit", "rekindle"}
    assert row.flops == 2 * (64 * 128 + 128 * 128 + 128 * 10)
    assert 0 < row.share_of_peak
    assert row.peers["rekindle"].error < 1e-6
    assert row.ratio == max(row.peers[name].ours_of_it for name in ("eager", "torch.jit"))
    assert [len(line) for line in measure.table([row])] == [8, 8]


@pytest.mark.parametrize("network", NETWORKS[:6], ids=lambda network: network.name)
def test_networks_compute_what_eager_computes(network: measure.Network) -> None:
    module, arguments = prepared(network)
    subject = Subject(module, arguments, network.is_traced)
    with torch.no_grad():
        for found, expected in zip(peers.ours(subject)(), peers.eager(subject)(), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_a_peer_that_computes_something_else_is_left_out() -> None:
    timed = measure.Timed()
    expected = [torch.ones(3)]
    with pytest.raises(Unavailable, match="computes something else"):
        measure._check("onnxruntime", lambda: [torch.zeros(3)], expected, expected, timed)
    with pytest.raises(AssertionError):
        measure._check("rekindle", lambda: [torch.zeros(3)], expected, expected, timed)
    assert math.isnan(timed.error)


def test_rounded_weights_are_measured() -> None:
    (row,) = rounded_weights.run(1, "MLP", 0.0)
    assert list(row.call) == list(row.difference) == ["float32", "bfloat16", "int8"]
    assert max(row.difference.values()) < 0.05
    assert rounded_weights.table([row])[1][0] == row.network
