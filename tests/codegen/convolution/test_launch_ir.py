"""The function by which native code launches a kernel: parts, offsets, workspace, zeros around images, no memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pytest
import torch

from rekindle.codegen.convolution.launch_ir import (
    NULL,
    PADDED,
    SCRATCH,
    LaunchPart,
    Padding,
    launch_parameters,
    launch_text,
)
from rekindle.codegen.convolution.padding_ir import define_pad
from rekindle.codegen.convolution.task_ir import finished
from rekindle.codegen.emission.ir_builder import ModuleBuilder
from rekindle.codegen.llvm.engine import NativeCode, compile_module

Launch = Callable[[list[int], list[int]], int]

# Appends the word, the arguments and the number of threads to what the word has the address of.
KERNEL = """
define i64 @noted(ptr %words, ptr %a, ptr %b, ptr %c, i64 %threads) {
  %notes = load ptr, ptr %words
  %status.at = getelementptr i64, ptr %words, i64 1
  %status = load i64, ptr %status.at
  %count = load i64, ptr %notes
  %next = add i64 %count, 4
  store i64 %next, ptr %notes
  %a.index = add i64 %count, 1
  %b.index = add i64 %count, 2
  %c.index = add i64 %count, 3
  %a.at = getelementptr i64, ptr %notes, i64 %a.index
  %b.at = getelementptr i64, ptr %notes, i64 %b.index
  %c.at = getelementptr i64, ptr %notes, i64 %c.index
  %t.at = getelementptr i64, ptr %notes, i64 %next
  store ptr %a, ptr %a.at
  store ptr %b, ptr %b.at
  store ptr %c, ptr %c.at
  store i64 %threads, ptr %t.at
  %mine = icmp eq ptr %c, null
  br i1 %mine, label %end, label %write
write:
  store i64 7, ptr %c
  br label %end
end:
  ret i64 %status
}
"""


class Memory:
    """``aligned_alloc`` and ``free``: what was asked for and freed. There is none while ``is_empty``."""

    def __init__(self) -> None:
        self.given: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.sizes: list[int] = []
        self.contents: list[bytes] = []
        self.is_empty = False
        self._functions = [
            ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)(self._allocate),
            ctypes.PYFUNCTYPE(None, ctypes.c_size_t)(self._free),
        ]
        places = [ctypes.cast(each, ctypes.c_void_p).value for each in self._functions]
        self.addresses = {name: place or 0 for name, place in zip(("aligned_alloc", "free"), places, strict=True)}

    def _allocate(self, alignment: int, size: int) -> int:
        assert alignment == 64
        assert size % 64 == 0
        self.sizes.append(size)
        if self.is_empty:
            return 0
        made = ctypes.create_string_buffer(b"\xff" * size, size + alignment)
        start = -(-ctypes.addressof(made) // alignment) * alignment
        self.given[start] = made
        return start

    def _free(self, address: int) -> None:
        if address:
            self.contents.append(ctypes.string_at(address, self.sizes[-1]))
            del self.given[address]


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.fixture(scope="module")
def code(memory: Memory) -> NativeCode:
    module = ModuleBuilder()
    define_pad(module)
    text = launch_text("noted", 3, 2, returns=True, pads=True)
    if text is None:
        pytest.skip("this build of PyTorch does not report its number of threads")
    return compile_module(finished(module) + KERNEL + text, libraries=[memory], is_shared=False, cache=False)


@pytest.fixture
def launch(code: NativeCode, memory: Memory) -> Iterator[Launch]:
    memory.sizes.clear()
    memory.contents.clear()
    memory.is_empty = False
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(code.address("noted.launch"))

    def call(pointers: list[int], parameters: list[int]) -> int:
        places = (ctypes.c_void_p * len(pointers))(*pointers)
        words = (ctypes.c_int64 * len(parameters))(*parameters)
        return int(function(ctypes.addressof(places), ctypes.addressof(words), None))

    yield call
    assert not memory.given


class Notes:
    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * 64)()

    @property
    def address(self) -> int:
        return ctypes.addressof(self._words)

    @property
    def calls(self) -> list[list[int]]:
        """The arguments and the number of threads of each call."""
        return [list(self._words[first : first + 4]) for first in range(1, self._words[0] + 1, 4)]


def test_each_part_gets_its_arguments(launch: Launch, memory: Memory) -> None:
    notes = Notes()
    parts = [
        LaunchPart([(0, 0), (1, 8), (NULL, 0)], [notes.address, 0]),
        LaunchPart([(1, 16), (NULL, 0), (NULL, 0)], [notes.address, 0]),
    ]
    assert launch([1000, 2000], launch_parameters(parts, 1)) == 0
    assert notes.calls == [[1000, 2008, 0, 1], [2016, 0, 0, 1]]
    assert memory.sizes == []


@pytest.mark.parametrize("statuses", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_it_fails_if_a_part_fails(launch: Launch, statuses: tuple[int, ...]) -> None:
    notes = Notes()
    parts = [LaunchPart([(NULL, 0)] * 3, [notes.address, status]) for status in statuses]
    assert launch([], launch_parameters(parts, 1)) == max(statuses)
    assert len(notes.calls) == 2


@pytest.mark.parametrize("most", [1, 2, 5])
def test_threads_share_the_workspace(launch: Launch, memory: Memory, most: int) -> None:
    notes = Notes()
    parameters = launch_parameters([LaunchPart([(0, 0), (NULL, 0), (SCRATCH, 0)], [notes.address, 0])], most, 100)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert launch([8], parameters) == 0
    finally:
        torch.set_num_threads(before)
    ((first, second, scratch, threads),) = notes.calls
    assert (first, second, threads) == (8, 0, min(most, 3))
    assert scratch % 64 == 0
    assert memory.sizes == [-(-100 * threads // 64) * 64]


def test_zeros_are_put_around_the_image(launch: Launch, memory: Memory) -> None:
    notes = Notes()
    image = (ctypes.c_char * 8)(*b"abcdefgh")
    padding = Padding(images=2, rows=2, row=2, before=3, between=1, after=2)
    part = LaunchPart([(PADDED, 0), (PADDED, 3), (SCRATCH, 0)], [notes.address, 0])
    assert launch([ctypes.addressof(image)], launch_parameters([part], 1, 64, padding)) == 0
    ((padded, moved, scratch, _),) = notes.calls
    assert moved == padded + 3
    assert scratch == padded + 64
    assert padding.size == 20
    assert memory.sizes == [128]
    assert memory.contents[0][:20] == b"\0\0\0ab\0cd\0\0\0\0\0ef\0gh\0\0"
    assert memory.contents[0][64:72] == (7).to_bytes(8, "little")


def test_without_memory_the_kernel_does_not_run(launch: Launch, memory: Memory) -> None:
    notes = Notes()
    memory.is_empty = True
    assert launch([8], launch_parameters([LaunchPart([(SCRATCH, 0)] * 3, [notes.address, 0])], 1, 100)) == 1
    assert notes.calls == []
