"""Build the library that main.c calls: a small classifier, which needs no PyTorch to run."""

import torch
from torch import Tensor, nn

import rekindle


class Classifier(nn.Module):
    """Two layers, and the class that is most probable."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 16)
        self.output = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, list[str]]:
        probabilities = torch.softmax(self.output(torch.tanh(self.hidden(x))), -1)
        names = ["setosa", "versicolor", "virginica"]
        found = []
        for row in probabilities:
            best = 0
            for i in range(len(names)):
                if bool(row[i] > row[best]):
                    best = i
            found.append(names[best])
        return probabilities, found


torch.manual_seed(0)
module = rekindle.script(Classifier().eval())
built = rekindle.build(module, "net", [(torch.randn(2, 4),)], dynamic={"x": [0]}, freestanding=True)
print(f"{built.library}: {built.library.stat().st_size} bytes")
