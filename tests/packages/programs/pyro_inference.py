"""Pyro traces the losses of variational inference with its parameters as arguments, and asks whether the arguments are
the parameters that it knows; its samplers trace potentials."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pyro.ops.jit
import torch
from keeping import main
from pyro.infer import (
    MCMC,
    NUTS,
    SVI,
    JitTrace_ELBO,
    JitTraceEnum_ELBO,
    JitTraceGraph_ELBO,
    JitTraceMeanField_ELBO,
)
from pyro.optim import Adam


def model(data: torch.Tensor) -> None:
    location = pyro.param("location", torch.zeros(2))
    with pyro.plate("data", len(data)):
        hidden = pyro.sample("hidden", dist.Normal(location[0], 1.0))
        pyro.sample("seen", dist.Normal(hidden, 0.5), obs=data)


def guide(data: torch.Tensor) -> None:
    mean = pyro.param("mean", torch.zeros(len(data)))
    scale = pyro.param("scale", torch.ones(len(data)), constraint=dist.constraints.positive)
    with pyro.plate("data", len(data)):
        pyro.sample("hidden", dist.Normal(mean, scale))


def fitted(loss: type) -> Any:
    pyro.clear_param_store()
    pyro.set_rng_seed(7)
    inference = SVI(model, guide, Adam({"lr": 0.05}), loss(ignore_jit_warnings=True))
    losses = [inference.step(torch.arange(4.0) + step * 0.1) for step in range(5)]
    return losses, {name: value.detach() for name, value in pyro.get_param_store().items()}


def called() -> Any:
    pyro.clear_param_store()

    @pyro.ops.jit.trace(ignore_warnings=True)
    def weighted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y + pyro.param("weight", torch.ones(2)).sum()

    results = [weighted(torch.full((2,), float(n)), torch.ones(2)) for n in range(3)]
    sum(each.sum() for each in results).backward()
    return [each.detach() for each in results], pyro.param("weight").grad


def sampled() -> Any:
    pyro.clear_param_store()
    pyro.set_rng_seed(7)

    def normal(data: torch.Tensor) -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", len(data)):
            pyro.sample("seen", dist.Normal(mean, 1.0), obs=data)

    sampler = MCMC(
        NUTS(normal, jit_compile=True, ignore_jit_warnings=True), num_samples=20, warmup_steps=10, disable_progbar=True
    )
    sampler.run(torch.arange(4.0))
    return sampler.get_samples()["mean"]


if __name__ == "__main__":
    losses = (JitTrace_ELBO, JitTraceGraph_ELBO, JitTraceMeanField_ELBO, JitTraceEnum_ELBO)
    main({**{each.__name__: lambda each=each: fitted(each) for each in losses}, "called": called, "sampled": sampled})
