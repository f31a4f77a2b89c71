"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward mm(grad, self, mat2) -> self, mat2:
    return grad.mm(mat2.t()), self.t().mm(grad)

backward bmm(grad, self, mat2) -> self, mat2:
    return grad.bmm(mat2.transpose(1, 2)), self.transpose(1, 2).bmm(grad)

backward mv(grad, self, vec) -> self, vec:
    return grad.unsqueeze(1) * vec, self.t().mv(grad)

backward dot(grad, self, tensor) -> self, tensor:
    return grad * tensor, grad * self

backward t(grad) -> self:
    return grad.t()
"""
