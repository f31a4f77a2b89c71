"""Rules that whole families of operators share: which operators, and how the rule follows from the schema.

The functions in :data:`FAMILIES` write the body of a rule for one schema; :mod:`rekindle.transforms.vmap.rules`
documents its syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import TensorType

RENAMED: Final[Mapping[str, str]] = {"from": "from_"}
"""Replacements for argument names that are keywords of the language."""


def call(schema: FunctionSchema, **replaced: str) -> str:
    """Return the source of a call of the operator with its own arguments, some of them ``replaced`` by other
    expressions."""
    parts = []
    for argument in schema.arguments:
        value = replaced.get(argument.name, RENAMED.get(argument.name, argument.name))
        parts.append(f"{argument.name}={value}" if argument.kwarg_only else value)
    return f"torch.{schema.name.removeprefix('aten::')}({', '.join(parts)})"


def tensors_of(schema: FunctionSchema) -> list[str]:
    """Return the names of the arguments that are tensors."""
    return [argument.name for argument in schema.arguments if isinstance(argument.type, TensorType)]


def pointwise(schema: FunctionSchema) -> str | None:
    """Return the source of the rule for a pointwise operator: each element of the result is computed from one element
    of each tensor, after broadcasting. Return None if it is not pointwise in this sense."""
    names = tensors_of(schema)
    if any(argument.is_out for argument in schema.arguments):
        return None
    if schema.is_mutable:
        return _in_place(schema, names)
    if len(names) == 1:
        return f"    return {call(schema)}\n"
    if len(names) not in (2, 3):
        return None
    new = [f"{name}_" for name in names]
    pairs = ", ".join(f"{name}, batched_{name}" for name in names)
    function = "aligned" if len(names) == 2 else "aligned3"
    return (
        f"    {', '.join(new)} = {function}({pairs})\n    return {call(schema, **dict(zip(names, new, strict=True)))}\n"
    )


def _in_place(schema: FunctionSchema, names: list[str]) -> str | None:
    written = [each.name for each in schema.arguments if each.alias is not None and each.alias.is_write]
    if written != ["self"]:
        return None
    others = {name: f"padded({name}, batched_{name}, self.dim() - 1)" for name in names if name != "self"}
    return f"    return {call(schema, **others)}\n"


def along(schema: FunctionSchema) -> str:
    """Return the source of the rule for an operator along ``dim`` whose results have the rank of ``self``."""
    made = call(schema, self="lifted(self)", dim="inner(self, dim)")
    return _lowered(schema, made)


def reducing(schema: FunctionSchema) -> str:
    """Return the source of the rule for an operator that removes ``dim`` (a number, a list, or all if None), or keeps
    each of these dimensions with size 1 for ``keepdim``."""
    (dim,) = (argument for argument in schema.arguments if argument.name == "dim")
    kind = str(dim.type)
    if kind == "int":
        where = "inner(self, dim)"
    elif kind in ("int?", "Optional[int]"):
        made = call(schema, self="flat(self) if dim is None else lifted(self)", dim="where", keepdim="keeps")
        return (
            "    where = 1 if dim is None else inner(self, dim)\n    keeps = keepdim and dim is not None\n"
            f"    result = {made}\n"
            "    return lowered(result, self) if keeps or not keepdim else with_dimensions(result, self.dim() - 1)\n"
        )
    else:
        where = _listed()
    return _lowered(schema, call(schema, self="lifted(self)", dim=where))


def _listed() -> str:
    return "inner_or_every(lifted(self), dim)"


def _lowered(schema: FunctionSchema, made: str) -> str:
    if len(schema.returns) == 1:
        return f"    return lowered({made}, self)\n"
    names = [f"result{index}" for index in range(len(schema.returns))]
    return f"    {', '.join(names)} = {made}\n    return {', '.join(f'lowered({name}, self)' for name in names)}\n"


def flattened(schema: FunctionSchema) -> str:
    """Return the source of the rule for a reduction over all elements, by the overload with ``dim``."""
    names = [argument.name for argument in schema.arguments if argument.name != "self" and not argument.kwarg_only]
    keywords = [f"{argument.name}={argument.name}" for argument in schema.arguments if argument.kwarg_only]
    arguments = ", ".join(["flat(self)", "1", *names, *keywords])
    return f"    return torch.{schema.name.removeprefix('aten::')}({arguments})\n"


def first_of_flattened(schema: FunctionSchema) -> str:
    """Return the source of the rule for a reduction over all elements whose overload with ``dim`` also returns
    indices."""
    return f"    return torch.{schema.name.removeprefix('aten::')}(flat(self), 1)[0]\n"


def leading(schema: FunctionSchema) -> str:
    """Return the source of the rule for an operator that takes any number of leading dimensions."""
    return f"    return {call(schema)}\n"


def folded(schema: FunctionSchema) -> str:
    """Return the source of the rule for an operator on an optional batch dimension, channels, and as many dimensions as
    its name states: the examples are folded into the batch dimension, or become it."""
    names = tensors_of(schema)
    first = names[0]
    number = int(re.search(r"(\d)d", schema.name)[1])  # type: ignore[index]  # all names in the table have one
    made = call(schema, **{name: f"torch.flatten({name}, 0, 1)" for name in names})
    results = [f"result{index}" for index in range(len(schema.returns))]
    back = ", ".join(f"torch.unflatten({name}, 0, [batch_size, torch.size({first}, 1)])" for name in results)
    return (
        f"    if {first}.dim() == {number + 2}:\n        return {call(schema)}\n"
        f"    {', '.join(results)} = {made}\n    return {back}\n"
    )


def like(schema: FunctionSchema) -> str:
    """Return the source of the rule for an operator that creates a tensor like another one, regardless of its
    elements."""
    return f"    return {call(schema)}\n"


FAMILIES: Final[tuple[tuple[Callable[[FunctionSchema], str | None], str], ...]] = (
    (
        pointwise,
        """
        clone contiguous to.dtype to.dtype_layout to.device to.other _to_copy alias detach detach_ positive conj
        resolve_conj resolve_neg conj_physical _conj _neg_view real imag fill.Scalar fill_.Scalar fill.Tensor
        fill_.Tensor copy_ copy zero_ zero masked_fill.Scalar masked_fill_.Scalar nan_to_num nan_to_num_ isclose
        float_power.Tensor_Tensor float_power.Scalar float_power.Tensor_Scalar rsub.Tensor rsub.Scalar where.self
        where.Scalar where.ScalarSelf where.ScalarOther relu6 selu celu_ selu_ relu6_ hardtanh hardtanh_ isfinite
        isinf isreal isneginf isposinf square square_ ldexp.Tensor gelu gelu_ mish hardswish hardsigmoid logit
        logit_ special_logit type_as _cast_Float _cast_Double subtract.Tensor multiply.Tensor divide.Tensor
        multiply.Scalar divide.Scalar subtract.Scalar clip xlogy.Tensor special_xlogy special_xlog1py special_zeta
        fmod.Tensor remainder.Tensor lerp.Tensor lerp.Scalar addcmul addcdiv polar complex heaviside copysign.Tensor
        nextafter gcd lcm logaddexp logaddexp2 hypot atan2 arctan2 maximum minimum fmax fmin max.other min.other
        floor_divide true_divide.Tensor true_divide.Scalar logical_and logical_or logical_xor logical_not threshold
        threshold_ isnan signbit frexp.Tensor tanh_backward sigmoid_backward threshold_backward gelu_backward
        silu_backward elu_backward leaky_relu_backward softplus_backward hardtanh_backward hardswish_backward
        hardsigmoid_backward mish_backward log_sigmoid_backward logit_backward hardshrink_backward
        softshrink_backward log_sigmoid special_ndtr
        """,
    ),
    (
        along,
        """
        softmax.int log_softmax.int _softmax _log_softmax cumsum cumprod logcumsumexp cummax cummin sort sort.stable
        argsort argsort.stable topk special_softmax special_log_softmax _logcumsumexp _safe_softmax
        """,
    ),
    (
        reducing,
        """
        sum.dim_IntList mean.dim amax amin prod.dim_int all.dim any.dim all.dims any.dims max.dim min.dim nansum
        nanmean argmax argmin median.dim nanmedian.dim mode kthvalue logsumexp var.dim var.correction std.dim
        std.correction var_mean.correction std_mean.correction var_mean.dim std_mean.dim norm.ScalarOpt_dim
        norm.ScalarOpt_dim_dtype count_nonzero.dim_IntList special_logsumexp linalg_vector_norm quantile.scalar
        nanquantile.scalar
        """,
    ),
    (flattened, "prod all any"),
    (first_of_flattened, "max min median nanmedian"),
    (
        leading,
        """
        inverse linalg_inv linalg_inv_ex linalg_cholesky linalg_cholesky_ex cholesky linalg_det linalg_slogdet
        slogdet det logdet linalg_eigvalsh linalg_eigh linalg_eig linalg_eigvals linalg_svd linalg_svdvals svd
        linalg_qr qr linalg_matrix_exp matrix_exp linalg_lu_factor linalg_lu_factor_ex linalg_lu linalg_pinv
        pinverse linalg_pinv.atol_rtol_float linalg_matrix_power matrix_power linalg_matrix_rank
        linalg_matrix_rank.atol_rtol_float linalg_cond linalg_ldl_factor linalg_ldl_factor_ex mT mH
        linalg_householder_product geqrf tril triu tril_ triu_ cholesky_inverse adjoint lu_unpack _linalg_slogdet
        _linalg_det _linalg_svd _linalg_eigh linalg_solve linalg_solve_ex linalg_lu_solve triangular_solve
        cholesky_solve linalg_solve_triangular ormqr
        """,
    ),
    (
        folded,
        """
        max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d_with_indices
        max_pool2d_with_indices max_pool3d_with_indices adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d reflection_pad1d reflection_pad2d
        reflection_pad3d replication_pad1d replication_pad2d replication_pad3d _upsample_nearest_exact1d.vec
        _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec upsample_nearest1d.vec upsample_nearest2d.vec
        upsample_nearest3d.vec upsample_linear1d.vec upsample_bilinear2d.vec upsample_bicubic2d.vec
        upsample_trilinear3d.vec _upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa.vec
        max_pool2d_with_indices_backward avg_pool2d_backward _adaptive_avg_pool2d_backward
        max_pool3d_with_indices_backward avg_pool3d_backward _adaptive_avg_pool3d_backward
        adaptive_max_pool2d_backward adaptive_max_pool3d_backward
        """,
    ),
    (
        like,
        """
        zeros_like ones_like empty_like full_like
        """,
    ),
)
"""Families, and the overloads in them. Operators that PyTorch tags as pointwise need not be named."""
