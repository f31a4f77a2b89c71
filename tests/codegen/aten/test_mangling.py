"""Mangled names are those that compilers write. The expected symbols come from g++ 12 and ``nm``."""

import pytest

from rekindle.codegen.aten import mangling
from rekindle.codegen.aten.mangling import CppType, mangled_name, read_type

_MANY = [
    "const at::Tensor &",
    "at::Tensor &",
    "at::TensorList",
    "const at::ITensorListRef &",
    "const c10::List<::std::optional<at::Tensor>> &",
    "const ::std::optional<at::Tensor> &",
    "::std::optional<at::Tensor>",
    "at::Scalar",
    "c10::SymInt",
    "at::IntArrayRef",
    "c10::SymIntArrayRef",
    "at::OptionalIntArrayRef",
    "at::OptionalSymIntArrayRef",
    "::std::optional<int64_t>",
    "::std::optional<c10::SymInt>",
    "::std::optional<double>",
    "::std::optional<at::ArrayRef<double>>",
    "at::ScalarType",
    "::std::optional<at::ScalarType>",
    "::std::optional<at::Layout>",
    "::std::optional<at::Device>",
    "c10::string_view",
    "::std::optional<c10::string_view>",
    "::std::optional<at::Generator>",
    "::std::array<bool,3>",
    "::std::array<bool,2>",
    "::std::array<bool,3>",
    "at::DimnameList",
    "::std::optional<at::DimnameList>",
    "at::ArrayRef<at::Scalar>",
    "::std::optional<c10::string_view>",
    "at::DimnameList",
    "at::ArrayRef<at::Scalar>",
    "::std::optional<at::ArrayRef<double>>",
    "at::DeviceIndex",
    "bool",
]
"""More components than have one digit: names of substitutions are S_, S0_ … SZ_, S10_ …"""

_MANY_WITH_LIBSTDCXX = (
    "_ZN2at4_ops4many4callERKNS_6TensorERS2_N3c108ArrayRefIS2_EERKNS6_8IListRefIS2_EERKNS6_4ListISt8optionalIS2_EEERKS"
    "F_SF_NS6_6ScalarENS6_6SymIntENS7_IlEENS7_ISM_EENS6_16OptionalArrayRefIlEENSP_ISM_EESE_IlESE_ISM_ESE_IdESE_INS7_Id"
    "EEENS6_10ScalarTypeESE_ISX_ESE_INS6_6LayoutEESE_INS6_6DeviceEESt17basic_string_viewIcSt11char_traitsIcEESE_IS16_E"
    "SE_INS_9GeneratorEESt5arrayIbLm3EES1A_IbLm2EES1B_NS7_INS_7DimnameEEESE_IS1E_ENS7_ISL_EES17_S1E_S1G_SW_ab"
)
_MANY_WITH_INLINE_NAMESPACE = (
    "_ZN2at4_ops4many4callERKNS_6TensorERS2_N3c108ArrayRefIS2_EERKNS6_8IListRefIS2_EERKNS6_4ListINSt3__18optionalIS2_E"
    "EEERKSG_SG_NS6_6ScalarENS6_6SymIntENS7_IlEENS7_ISN_EENS6_16OptionalArrayRefIlEENSQ_ISN_EENSF_IlEENSF_ISN_EENSF_Id"
    "EENSF_INS7_IdEEEENS6_10ScalarTypeENSF_ISY_EENSF_INS6_6LayoutEEENSF_INS6_6DeviceEEENSE_17basic_string_viewIcNSE_11"
    "char_traitsIcEEEENSF_IS17_EENSF_INS_9GeneratorEEENSE_5arrayIbLm3EEENS1B_IbLm2EEES1C_NS7_INS_7DimnameEEENSF_IS1F_E"
    "ENS7_ISM_EES18_S1F_S1H_SX_ab"
)


@pytest.fixture
def platform(monkeypatch):
    """Set the namespace of the standard library's classes and the code of int64_t."""

    def set_platform(std, int64):
        monkeypatch.setattr(mangling, "_STD", std)
        monkeypatch.setitem(mangling._BUILTIN, "int64_t", int64)
        read_type.cache_clear()

    yield set_platform
    read_type.cache_clear()


def _symbol(*parameters):
    return mangled_name(("at", "_ops", "many", "call"), parameters)


def test_a_function_without_parameters():
    assert mangled_name(("at", "_ops", "none", "call"), []) == "_ZN2at4_ops4none4callEv"


def test_repeated_components_are_substituted():
    symbol = _symbol("const at::Tensor &", "const at::Tensor &", "at::Tensor &")
    assert symbol == "_ZN2at4_ops4many4callERKNS_6TensorES4_RS2_"


def test_substitutions_of_all_types(platform):
    platform(("std",), "l")
    assert _symbol(*_MANY) == _MANY_WITH_LIBSTDCXX


def test_classes_in_an_inline_namespace_of_std(platform):
    """Those of libc++ are in ``std::__1``. g++ compiled stand-ins for them."""
    platform(("std", "__1"), "l")
    assert _symbol(*_MANY) == _MANY_WITH_INLINE_NAMESPACE


def test_int64_is_long_long_on_macos(platform):
    platform(("std", "__1"), "x")
    assert _symbol("int64_t", "at::IntArrayRef") == "_ZN2at4_ops4many4callExN3c108ArrayRefIxEE"


def test_types_are_read_without_typedefs(platform):
    platform(("std",), "l")
    tensor = CppType(("at", "Tensor"))
    assert read_type("at::TensorList") == CppType(("c10", "ArrayRef"), (tensor,))
    assert read_type("at::ArrayRef<at::Tensor>") == read_type("at::TensorList")
    assert read_type("::std::array<bool,12>") == CppType(("std", "array"), (CppType(("bool",)), 12))
    assert read_type("const at::Tensor &") == CppType(("&",), (CppType(("const",), (tensor,)),))
