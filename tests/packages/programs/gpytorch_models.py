"""gpytorch's documentation traces trained processes for deployment; its kernels and solvers use linear_operator."""

from __future__ import annotations

from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from keeping import compared, main
from torch import Tensor, nn


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x: Tensor, y: Tensor, likelihood: Any, kernel: Any) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points: Tensor) -> None:
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.LinearMean(1)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Moments(nn.Module):
    """What the documentation traces: tensors for the mean and the variance."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.model(x)
        return found.mean, found.variance


def traced(model: Any, *inputs: Tensor) -> Any:
    model.eval()
    with (
        torch.no_grad(),
        gpytorch.settings.fast_pred_var(),
        gpytorch.settings.trace_mode(),
    ):
        model(inputs[0])  # what predictions share is computed before
        return compared(
            Moments(model),
            *((x,) for x in inputs),
            compile=lambda module: torch.jit.trace(module, inputs[0], check_trace=False),
        )


def exact(kernel: Any) -> Any:
    def run() -> Any:
        x = torch.linspace(0, 1, 20)
        y = torch.sin(6 * x) + 0.1 * torch.randn(20)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Exact(x, y, likelihood, kernel())
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (-marginal(model(x), y)).backward()
            optimizer.step()
        return [model.covar_module.outputscale.detach(), traced(model, torch.linspace(-1, 2, 9))]

    return run


def variational() -> Any:
    model = Variational(torch.linspace(0, 1, 6).unsqueeze(-1))
    return traced(model, torch.linspace(-1, 2, 9).unsqueeze(-1))


def solved() -> Any:
    """Conjugate gradients of linear_operator, whose steps are scripted at import."""
    x = torch.linspace(0, 1, 30).unsqueeze(-1)
    covariance = gpytorch.kernels.MaternKernel(nu=1.5)(x).add_jitter(0.1)
    with gpytorch.settings.fast_computations(True, True, True), gpytorch.settings.max_cholesky_size(1):
        return covariance.solve(torch.randn(30, 2)).detach()


if __name__ == "__main__":
    main(
        {
            "exact, RBF": exact(gpytorch.kernels.RBFKernel),
            "exact, Matern": exact(gpytorch.kernels.MaternKernel),
            "exact, periodic": exact(gpytorch.kernels.PeriodicKernel),
            "exact, RQ": exact(gpytorch.kernels.RQKernel),
            "variational": variational,
            "conjugate gradients": solved,
        }
    )
