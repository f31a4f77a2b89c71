"""What generated code may call is found by name."""

import ctypes

import torch

from rekindle.codegen.llvm.symbols import find


def test_functions_of_torch():
    address = find("aoti_torch_dtype_float32")
    assert address is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(address)() == 6


def test_functions_of_cpython():
    address = find("PyLong_FromLongLong")
    assert ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int64)(address)(12) == 12


def test_functions_of_the_c_library():
    address = find("cos")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.0) == 1.0


def test_that_one_is_not_there_is_an_answer():
    assert find("Sleef_noidea16_u10") is None
    assert find("") is None


def test_the_threads_are_those_of_torch():
    """The OpenMP that is found is the one that torch counts its threads with, not a second copy."""
    address = find("omp_get_max_threads")
    if address is None:
        assert "OpenMP" not in torch.__config__.parallel_info().partition("ATen parallel backend: ")[2]
        return
    count = ctypes.CFUNCTYPE(ctypes.c_int)(address)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert count() == 3
    finally:
        torch.set_num_threads(before)
