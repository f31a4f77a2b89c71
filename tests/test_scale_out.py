"""The recipes of examples/scale_out: two processes train and predict, threads serve."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rekindle

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "examples" / "scale_out"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def torchrun(recipe: str, *arguments: str) -> str:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launcher, str(RECIPES / recipe), *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["ddp", "fsdp2"])
def test_two_processes_train_and_the_archive_is_complete(way: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    losses = [float(text) for text in torchrun("train.py", way, str(path)).split()]
    assert losses == pytest.approx([1.9291, 0.9347, 0.5495, 0.4996, 0.4526, 0.3960, 0.3687, 0.3716], abs=2e-2)
    loaded = rekindle.load(path)
    x = torch.randn(512, 8)
    with torch.no_grad():
        error = nn.functional.mse_loss(loaded(x), x.sin().sum(1, keepdim=True))
    assert error < 1.0  # 4.0 before training: all parameters are those that were learned


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("scale_out") / "net.pt"
    net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3)).eval()
    rekindle.save(rekindle.script(net), path)
    return path


def test_two_processes_predict_all_rows(archive: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    np.save(tmp_path / "inputs.npy", rows)
    torchrun("predict.py", str(archive), str(tmp_path / "inputs.npy"), str(tmp_path / "outputs.npy"))
    with torch.no_grad():
        expected = rekindle.load(archive)(torch.from_numpy(rows))
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "outputs.npy")), expected)


@pytest.fixture
def address(archive: Path) -> Iterator[str]:
    command = [sys.executable, str(RECIPES / "serve.py"), str(archive), "0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+\n", line), line
            yield line.strip()
        finally:
            process.kill()


def ask(address: str, rows: Any) -> Any:
    with urllib.request.urlopen(address, json.dumps(rows).encode(), timeout=60) as reply:
        return json.load(reply)


def test_threads_serve_many_requests_at_once(archive: Path, address: str) -> None:
    requests = torch.randn(60, 5, 8)
    with torch.no_grad():
        expected = rekindle.load(archive)(requests)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda rows: ask(address, rows.tolist()), requests))
    torch.testing.assert_close(torch.tensor(answers), expected)
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(address, [[1.0, 2.0]])
    with caught.value as refused:
        assert json.load(refused) == {"error": "a row has 8 numbers"}
    assert len(ask(address, requests[0].tolist())) == 5  # the threads continue
