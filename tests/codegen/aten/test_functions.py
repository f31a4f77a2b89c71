"""Every operator of ATen's has its C++ function, and the types are those of PyTorch's headers."""

import ctypes
import re
from pathlib import Path

import pytest
import torch

from rekindle.codegen.aten.functions import AtenFunction, aten_function

RELEASE = ".".join(torch.__version__.split(".")[:2])

_NOT_GENERATED = "registered by hand: native_functions.yaml does not have it, so at::_ops does not either"

NOT_FOUND = {
    "aten::get_gradients": _NOT_GENERATED,
    "aten::quantized_gru.data": _NOT_GENERATED,
    "aten::quantized_gru.data_legacy": _NOT_GENERATED,
    "aten::quantized_gru.input": _NOT_GENERATED,
    "aten::quantized_gru.input_legacy": _NOT_GENERATED,
    "aten::quantized_lstm.data": _NOT_GENERATED,
    "aten::quantized_lstm.data_legacy": _NOT_GENERATED,
    "aten::quantized_lstm.input": _NOT_GENERATED,
    "aten::quantized_lstm.input_legacy": _NOT_GENERATED,
}
"""The overloads without a function, and why. Remove a name when its function is found."""
NOT_FOUND_SINCE = {"2.14": {"aten::shallow_copy_data_": _NOT_GENERATED}}
"""Further ones, by the first release of PyTorch that has them."""
NUMBER_FOUND = {"2.11": 3080, "2.12": 3102, "2.13": 3101, "2.14": 3103, "2.15": 3110}
"""By release of PyTorch."""

_INCLUDE = Path(torch.__file__).parent / "include" / "ATen" / "ops"
_STRUCT = re.compile(r"struct TORCH_API (\w+) \{(.*?)\n\};", re.DOTALL)
_NAME = re.compile(r'\* (name|overload_name) = "(.*?)";')
_CALL = re.compile(r"static (.*) call\((.*)\);")


def _found():
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    return {name: aten_function(name) for name in names}


def test_every_overload_has_a_function():
    functions = _found()
    without = {name for name, function in functions.items() if function is None}
    later = [names for since, names in NOT_FOUND_SINCE.items() if _number(RELEASE) >= _number(since)]
    expected = set(NOT_FOUND).union(*later)
    if _number(RELEASE) < _number("2.13"):
        expected |= {name for name, types in _declared() if _takes_names(types)}
    assert without == expected
    number = len(functions) - len(without)
    assert number == NUMBER_FOUND.get(RELEASE, number)


def _number(release):
    return tuple(map(int, release.split(".")))


def _takes_names(types):
    """Return whether an overload takes names of dimensions. PyTorch has none since 2.13; the dispatcher of earlier
    releases prints such a type as ``str``, so no function is found, and Python calls the operator."""
    return any("Dimname" in type for type in types)


@pytest.mark.skipif(not _INCLUDE.is_dir(), reason="this PyTorch comes without headers")
def test_types_are_those_of_the_headers():
    functions = {name: function for name, function in _found().items() if function is not None}
    declared = {name: types for name, types in _declared() if not _takes_names(types)}
    assert functions.keys() == declared.keys()
    different = {
        name: (_declaration(function), declared[name])
        for name, function in functions.items()
        if _declaration(function) != declared[name]
    }
    assert different == {}


def _declared():
    """Return the pairs of the name of an overload and the types of its ``call``: those that it returns, then those of
    the parameters."""
    for path in _INCLUDE.glob("*_ops.h"):
        for struct, body in _STRUCT.findall(path.read_text()):
            name = dict(_NAME.findall(body))
            returned, parameters = _CALL.search(body).groups()
            qualified = f"{name['name']}.{name['overload_name']}".rstrip(".")
            assert struct == qualified.removeprefix("aten::").replace(".", "_")
            yield qualified, [returned, *(each.rpartition(" ")[0] for each in parameters.split(", ") if each)]


def _declaration(function):
    returned = ",".join(function.returns) or "void"
    return [f"::std::tuple<{returned}>" if len(function.returns) > 1 else returned, *function.parameters]


def test_addresses_are_those_of_different_functions():
    addresses = [function.address for function in _found().values() if function is not None]
    assert len(set(addresses)) == len(addresses)


def test_a_function_can_be_called():
    function = aten_function("aten::promote_types")
    assert function == AtenFunction(
        "aten::promote_types", function.address, ("at::ScalarType", "at::ScalarType"), ("at::ScalarType",)
    )
    promote = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_int8, ctypes.c_int8)(function.address)
    assert [promote(3, 6), promote(6, 7), promote(0, 1)] == [6, 7, 2]  # float32, float64, int16
    no_parameters = aten_function("aten::_nnpack_available")
    assert ctypes.CFUNCTYPE(ctypes.c_bool)(no_parameters.address)() == torch._nnpack_available()


def test_what_is_written_to_is_returned_by_reference():
    assert aten_function("aten::add_.Tensor").returns == ("at::Tensor &",)
    assert aten_function("aten::max.dim_max").returns == ("at::Tensor &", "at::Tensor &")
    assert aten_function("aten::resize_").returns == ("const at::Tensor &",)
    assert aten_function("aten::_foreach_add_.Scalar").returns == ()
    assert aten_function("aten::view").returns == ("at::Tensor",)


def test_overloads_that_the_dispatcher_does_not_have():
    """Those of TorchScript alone, of which none may get the function of another operator."""
    in_dispatcher = set(torch._C._dispatch_get_all_op_names())
    schemas = torch._C._jit_get_all_schemas()
    names = {f"{schema.name}.{schema.overload_name}".rstrip(".") for schema in schemas} - in_dispatcher
    assert len(names) > 500
    assert [name for name in sorted(names) if aten_function(name) is not None] == []


@pytest.mark.parametrize(
    "name", ["aten::no_such_operator", "aten::add.NoSuchOverload", "prims::add", "add", "", "a::."]
)
def test_names_without_a_function(name):
    assert aten_function(name) is None


def test_operators_of_other_namespaces():
    with torch.library._scoped_library("rekindle_aten_functions", "DEF") as library:
        library.define("neg(Tensor self) -> Tensor")
        assert aten_function("rekindle_aten_functions::neg") is None


def test_an_overload_with_the_name_of_another():
    """``at::_ops::neg_out`` is the function of ``aten::neg.out``, not that of an operator called ``neg_out``."""
    assert aten_function("aten::neg.out") is not None
    with torch.library._scoped_library("aten", "FRAGMENT") as library:
        library.define("neg_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
        assert aten_function("aten::neg_out") is None
