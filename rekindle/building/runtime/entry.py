"""Implementations of a library's exported functions."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Address, Array, Byte, bits_of, c, invoke, native, offset, stack
from rekindle.building.runtime.borrowing import keep_borrowed
from rekindle.building.runtime.c_library import free, memset
from rekindle.building.runtime.c_values import (
    CValue,
    field_count,
    free_c_value,
    live_object,
    record_to_c,
    word_from_c,
    word_to_c,
)
from rekindle.building.runtime.descriptors import CLOSE, TENSOR, advance, after, is_plain
from rekindle.building.runtime.instances import Instance, begin_call, end_call
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import ErrorCode, Record, Tensor, allocate_zeroed, fail, fail_number, object_of
from rekindle.building.runtime.tensors import contiguous


@native
def call_method(
    instance: Instance,
    method: Address,
    parameters: Array[Byte],
    checks: Array[int],
    returns: Array[Byte],
    arguments: Address,
    count: int,
    result: CValue | None,
) -> int:
    """Run a method on arguments of the C API; return an error code, 0 for success.

    ``checks`` has three words for each parameter: the dtype and the rank of a tensor, each -1 if any is accepted; and 1
    if a contiguous copy may replace the tensor, because the program's result is the same.
    """
    if result is not None:
        memset(result, 0, 24)
    code = begin_call(instance, arguments, count, result)
    if code == ErrorCode.BUSY or instance is None:
        return code
    if code == 0 and result is not None:
        words = cast("Array[int]", allocate_zeroed(8 * field_count(parameters) + 8))
        take_arguments(instance, parameters, checks, arguments, count, words)
        if instance.code == 0:
            results = cast("Array[int]", stack(8))
            results[0] = 0
            if invoke(method, instance, words, results) == 0:
                word_to_c(instance, returns, results[0], result, False)
                if not is_plain(returns):
                    release(object_of(results[0]))
        drop_arguments(parameters, count, words)
        free(words)
        keep_borrowed(instance)
    return end_with_result(instance, result)


@native
def unpack_object(instance: Instance, value: CValue | None, result: CValue | None) -> int:
    """Write the attributes of an object as a tuple of the C API; return an error code, 0 for success."""
    if result is not None:
        memset(result, 0, 24)
    code = begin_call(instance, value, 1, result)
    if code == ErrorCode.BUSY or instance is None:
        return code
    if code == 0 and value is not None and result is not None:
        each = live_object(instance, value)
        if each is None:
            fail(instance, ErrorCode.ARGUMENT_ERROR, c("the value is not an object of this instance, or was freed"))
        else:
            record_to_c(instance, cast("Record", each), result, True)
    return end_with_result(instance, result)


@native
def end_with_result(instance: Instance, result: CValue | None) -> int:
    """End a call, and return its error code. If the call failed, free what exists of its result."""
    code = end_call(instance)
    if code != 0 and result is not None:
        free_c_value(result)
    return code


@native
def take_arguments(
    instance: Instance,
    parameters: Array[Byte],
    checks: Array[int],
    arguments: Address,
    count: int,
    words: Array[int],
) -> None:
    """Convert arguments of the C API to 64-bit words, with new references, and write them to ``words``. Errors, such
    as missing arguments, are stored in the instance."""
    descriptor = advance(parameters, 1)
    i = 0
    while descriptor[0] != CLOSE:
        if i == count:
            break
        words[i] = word_from_c(instance, descriptor, cast("CValue", offset(arguments, 24 * i)))
        if instance.code != 0:
            return
        if descriptor[0] == TENSOR:
            given = cast("Tensor", object_of(words[i]))
            check_tensor(instance, given, checks[3 * i], checks[3 * i + 1], i)
            if instance.code == 0 and checks[3 * i + 2] != 0:
                # Kernels are made for the strides of examples, which are contiguous as a rule.
                words[i] = bits_of(contiguous(instance, given))
                release(given)
            if instance.code != 0:
                return
        descriptor = after(descriptor)
        i += 1
    if i != count or descriptor[0] != CLOSE:
        fail_number(
            instance, ErrorCode.ARGUMENT_ERROR, c("the method takes another number of arguments than %lld"), count
        )


@native
def check_tensor(instance: Instance, tensor: Tensor, dtype: int, rank: int, number: int) -> None:
    """Set an error in the context if a tensor does not have the dtype and the rank that the library was built for."""
    if dtype >= 0 and tensor.dtype != dtype:
        fail_number(
            instance,
            ErrorCode.ARGUMENT_ERROR,
            c("argument %lld has another dtype than the library was built for"),
            number,
        )
    elif rank >= 0 and tensor.rank != rank:
        fail_number(
            instance,
            ErrorCode.ARGUMENT_ERROR,
            c("argument %lld has another rank than the library was built for"),
            number,
        )


@native
def drop_arguments(parameters: Array[Byte], count: int, words: Array[int]) -> None:
    descriptor = advance(parameters, 1)
    for i in range(count):
        if descriptor[0] == CLOSE:
            return
        if not is_plain(descriptor):
            release(object_of(words[i]))
        descriptor = after(descriptor)
