"""Models with their losses, as tutorials and repositories write them. Each returns the scalar to differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.learning import GPT

# ----------------------------------------------------------------------------------------------------------- transforme


class Translation(nn.Module):
    """``nn.Transformer`` on embedded sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
        self.mask = nn.Buffer(nn.Transformer.generate_square_subsequent_mask(12))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        found: Tensor = self.transformer(source, target, tgt_mask=self.mask, tgt_is_causal=True)
        return found.square().mean()


class Decoder(nn.Module):
    """``nn.TransformerDecoder``, which attends to a memory."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, batch_first=True), 4)

    def forward(self, target: Tensor, memory: Tensor) -> Tensor:
        found: Tensor = self.decoder(target, memory)
        return found.square().mean()


# ---------------------------------------------------------------------------------------------------------------- imag


class Classifier(nn.Module):
    """A network for images, with its loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.network(x), target)


def resnet18() -> nn.Module:
    """torchvision's network."""
    from torchvision.models import resnet18 as network  # type: ignore[import-untyped]

    return Classifier(network(num_classes=10))


def mobilenet() -> nn.Module:
    """torchvision's network."""
    from torchvision.models import mobilenet_v3_small as network

    return Classifier(network(num_classes=10))


class Generator(nn.Module):
    """Transposed convolutions from noise to an image of 32x32, as in DCGAN."""

    def __init__(self, noise: int = 32, width: int = 16) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, width * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(width * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(width * 4, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(True),
            nn.ConvTranspose2d(width, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z: Tensor) -> Tensor:
        found: Tensor = self.main(z)
        return found


class Discriminator(nn.Module):
    """Convolutions from an image to a logit, as in DCGAN."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 2, width * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 4, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.main(x)
        return found.view(-1)


class GANStep(nn.Module):
    """The loss of the generator, or that of the discriminator."""

    def __init__(self, of_generator: bool) -> None:
        super().__init__()
        self.generator = Generator()
        self.discriminator = Discriminator()
        self.of_generator = of_generator

    def forward(self, real: Tensor, z: Tensor) -> Tensor:
        fake = self.generator(z)
        if self.of_generator:
            logits = self.discriminator(fake)
            return F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
        of_real, of_fake = self.discriminator(real), self.discriminator(fake.detach())
        return F.binary_cross_entropy_with_logits(
            of_real, torch.ones_like(of_real)
        ) + F.binary_cross_entropy_with_logits(of_fake, torch.zeros_like(of_fake))


class VAE(nn.Module):
    """The variational autoencoder of PyTorch's examples."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z: Tensor) -> Tensor:
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x: Tensor) -> Tensor:
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        bce = F.binary_cross_entropy(self.decode(z), x.view(-1, 784), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return bce + kld


# ------------------------------------------------------------------------------------------------------------- sequenc


class Attention(nn.Module):
    """Bahdanau's attention, as in PyTorch's tutorial on translation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.Wa = nn.Linear(width, width)
        self.Ua = nn.Linear(width, width)
        self.Va = nn.Linear(width, 1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys)


class Seq2Seq(nn.Module):
    """A GRU that reads, and one that writes with attention, in a loop with the right words given."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.source = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.target = nn.Embedding(words, width)
        self.attention = Attention(width)
        self.decoder = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, words)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        keys, hidden = self.encoder(self.source(source))
        h = hidden[0]
        outputs: list[Tensor] = []
        for i in range(target.size(1) - 1):
            context = self.attention(h.unsqueeze(1), keys)
            h = self.decoder(torch.cat((self.target(target[:, i]), context.squeeze(1)), dim=1), h)
            outputs.append(self.out(h))
        scores = torch.stack(outputs, 1)
        return F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())


class NeuralODE(nn.Module):
    """Twenty steps of the method of Runge and Kutta through a small network."""

    def __init__(self, width: int = 32, steps: int = 20) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        self.steps = steps

    def forward(self, y: Tensor, goal: Tensor) -> Tensor:
        h = 1.0 / self.steps
        for _ in range(self.steps):
            k1 = self.field(y)
            k2 = self.field(y + h / 2 * k1)
            k3 = self.field(y + h / 2 * k2)
            k4 = self.field(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return F.mse_loss(y, goal)


# -------------------------------------------------------------------------------------------------------------- the re


class DLRM(nn.Module):
    """Embeddings of categories and a perceptron of numbers, whose products with each other go to a second one."""

    def __init__(self, tables: int = 8, rows: int = 1000, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1))
        first, second = torch.tril_indices(tables + 1, tables + 1, -1)
        self.first, self.second = nn.Buffer(first), nn.Buffer(second)

    def forward(self, dense: Tensor, categories: Tensor, clicked: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = [x]
        for i, table in enumerate(self.tables):
            vectors.append(table(categories[i]))
        t = torch.stack(vectors, 1)
        z = torch.bmm(t, t.transpose(1, 2))
        r = torch.cat([x, z[:, self.first, self.second]], 1)
        return F.binary_cross_entropy_with_logits(self.top(r).squeeze(1), clicked)


class PPO(nn.Module):
    """An actor and a critic, with the loss of CleanRL's PPO."""

    def __init__(self, observed: int = 16, actions: int = 6, width: int = 64) -> None:
        super().__init__()
        self.critic = nn.Sequential(
            nn.Linear(observed, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.actor = nn.Sequential(
            nn.Linear(observed, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, actions)
        )
        self.clip_coef = 0.2
        self.ent_coef = 0.01
        self.vf_coef = 0.5

    def forward(
        self, obs: Tensor, actions: Tensor, logprobs: Tensor, advantages: Tensor, returns: Tensor, values: Tensor
    ) -> Tensor:
        logits = F.log_softmax(self.actor(obs), dim=-1)
        newlogprob = logits.gather(1, actions.unsqueeze(1)).squeeze(1)
        entropy = -(logits.exp() * logits).sum(-1)
        ratio = (newlogprob - logprobs).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss1 = -advantages * ratio
        pg_loss2 = -advantages * torch.clamp(ratio, 1 - self.clip_coef, 1 + self.clip_coef)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        newvalue = self.critic(obs).view(-1)
        v_loss_unclipped = (newvalue - returns) ** 2
        v_clipped = values + torch.clamp(newvalue - values, -self.clip_coef, self.clip_coef)
        v_loss = 0.5 * torch.max(v_loss_unclipped, (v_clipped - returns) ** 2).mean()
        return pg_loss - self.ent_coef * entropy.mean() + v_loss * self.vf_coef


Model = Callable[[], nn.Module]
Arguments = Callable[[], tuple[Tensor, ...]]


def _images() -> tuple[Tensor, ...]:
    return torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))


def _noise() -> tuple[Tensor, ...]:
    return torch.randn(16, 1, 32, 32), torch.randn(16, 32, 1, 1)


def _rollout() -> tuple[Tensor, ...]:
    numbers = [torch.randn(256) for _ in range(4)]
    return torch.randn(256, 16), torch.randint(0, 6, (256,)), -numbers[0].abs(), *numbers[1:]


MODELS: Final[list[tuple[str, Model, Arguments]]] = [
    ("GPT, two blocks, 8x64x128", lambda: GPT(64, 128, 64), lambda: (*torch.randint(0, 64, (2, 8, 64)),)),
    ("nn.Transformer 4x12x64", Translation, lambda: (torch.randn(4, 16, 64), torch.randn(4, 12, 64))),
    ("nn.TransformerDecoder, 4 layers, 4x12x64", Decoder, lambda: (torch.randn(4, 12, 64), torch.randn(4, 16, 64))),
    ("ResNet-18, 4x3x64x64", resnet18, _images),
    ("MobileNetV3, 4x3x64x64", mobilenet, _images),
    ("GAN, step of the generator", lambda: GANStep(True), _noise),
    ("GAN, step of the discriminator", lambda: GANStep(False), _noise),
    ("VAE, 128x784", VAE, lambda: (torch.rand(128, 784),)),
    ("GRU seq2seq with attention, 16x12x64", lambda: Seq2Seq(200, 64), lambda: (*torch.randint(0, 200, (2, 16, 12)),)),
    (
        "DLRM, 8 tables, 128x16",
        DLRM,
        lambda: (torch.randn(128, 13), torch.randint(0, 1000, (8, 128, 2)), torch.randint(0, 2, (128,)).float()),
    ),
    ("PPO's loss, 256x16", PPO, _rollout),
    ("neural ODE, 20 steps, 64x2", NeuralODE, lambda: (torch.randn(64, 2), torch.randn(64, 2))),
]
"""What each is called, what makes it, and what makes its arguments."""
