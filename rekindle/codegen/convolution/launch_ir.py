"""LLVM IR of the function by which native code launches a kernel with a table of words: ``i64 @name.launch(ptr
pointers, ptr parameters, ptr scalars)``, as a :class:`~rekindle.codegen.llvm.call_sites.CachedLaunch` requires.

It allocates the workspace, copies the image with zeros around it if the parameters require that, and calls ``@name``
for each part. It returns 0 on success; 1 if there is no memory, or ``@name`` returns another number than 0. The
parameters are those of :class:`LaunchParameter`, then for each part the sources of its arguments, their offsets in
bytes, and its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rekindle.codegen.llvm.symbols import find

THREADS: Final = "_ZN2at15get_num_threadsEv"
"""``at::get_num_threads``."""
ALIGNMENT: Final = 64
NULL: Final = -1
SCRATCH: Final = -2
PADDED: Final = -3
"""Sources of an argument other than a Tensor: none, the workspace, or the padded image."""


class LaunchParameter(IntEnum):
    """Indices of the parameters that precede those of the parts. Sizes are in bytes."""

    PARTS = 0
    MAX_THREADS = 1
    WORKSPACE = 2
    """The size of the workspace of one thread."""
    PADDED = 3
    """The size of the zero-padded image, a multiple of ``ALIGNMENT``; 0 if no padding is needed."""
    IMAGES = 4
    ROWS = 5
    ROW = 6
    BEFORE = 7
    BETWEEN = 8
    AFTER = 9
    """Arguments of the function of :func:`~rekindle.codegen.convolution.padding_ir.define_pad`."""


@dataclass(frozen=True, slots=True)
class Padding:
    """Images as rows of bytes, and the bytes of zeros before, between and after the rows."""

    images: int
    rows: int
    row: int
    before: int
    between: int
    after: int

    @property
    def size(self) -> int:
        """Size in bytes of the images padded with zeros."""
        return self.images * (self.rows * self.row + self.before + (self.rows - 1) * self.between + self.after)


@dataclass(frozen=True, slots=True)
class LaunchPart:
    """One call of the kernel: for each argument the number of a Tensor, or ``NULL``, ``SCRATCH`` or ``PADDED``, and
    an offset in bytes."""

    arguments: Sequence[tuple[int, int]]
    words: Sequence[int]


def launch_parameters(
    parts: Sequence[LaunchPart], most_threads: int, workspace: int = 0, padding: Padding | None = None
) -> list[int]:
    """Return the parameters of a launch, as :class:`LaunchParameter` lists them, followed by those of ``parts``."""
    found = [len(parts), most_threads, workspace]
    if padding is None:
        found += [0] * (len(LaunchParameter) - len(found))
    else:
        size = -(-padding.size // ALIGNMENT) * ALIGNMENT
        found += [size, padding.images, padding.rows, padding.row, padding.before, padding.between, padding.after]
    for part in parts:
        found += [source for source, _ in part.arguments]
        found += [offset for _, offset in part.arguments]
        found += part.words
    return found


def launch_text(name: str, arguments: int, words: int, *, returns: bool, pads: bool) -> str | None:
    """Return the LLVM IR of ``@name.launch``, for the module of ``@name(ptr words, ptr argument…, i64 threads)`` with
    the given numbers of arguments and words. ``@name`` returns an i64 if ``returns``; the module has ``@pad`` if
    ``pads``. Return None if this build of PyTorch does not export its number of threads."""
    if find(THREADS) is None:
        return None
    given = ", ".join(f"ptr %argument{number}" for number in range(arguments))
    call = f"call {'i64' if returns else 'void'} @{name}(ptr %words, {given}, i64 %threads)"
    return _TEXT.format(
        name=name,
        alignment=ALIGNMENT,
        less=ALIGNMENT - 1,
        previous="padded.done" if pads else "allocated",
        workspace=int(LaunchParameter.WORKSPACE),
        padded=int(LaunchParameter.PADDED),
        first=len(LaunchParameter),
        arguments=arguments,
        part=2 * arguments + words,
        threads=THREADS,
        pad=_pad() if pads else "",
        reads="\n".join(_argument(number) for number in range(arguments)),
        call=f"%status = {call}" if returns else f"{call}\n  %status = add i64 0, 0",
    )


def _pad() -> str:
    words = range(LaunchParameter.IMAGES, LaunchParameter.AFTER + 1)
    loads = [
        f"  %pad{number}.at = getelementptr i64, ptr %parameters, i64 {number}\n"
        f"  %pad{number} = load i64, ptr %pad{number}.at"
        for number in words
    ]
    given = ", ".join(f"i64 %pad{number}" for number in words)
    call = f"  %image = load ptr, ptr %pointers\n  call void @pad(ptr %image, ptr %memory, {given})"
    skip = "  %pads = icmp ne i64 %padded, 0\n  br i1 %pads, label %padding, label %padded.done\npadding:"
    return "\n".join([skip, *loads, call, "  br label %padded.done\npadded.done:"])


def _argument(number: int) -> str:
    n = f"%argument{number}"
    return f"""\
  {n}.source.at = getelementptr i64, ptr %sources, i64 {number}
  {n}.source = load i64, ptr {n}.source.at
  {n}.special = icmp slt i64 {n}.source, 0
  {n}.number = sub i64 -1, {n}.source
  {n}.index = select i1 {n}.special, i64 {n}.number, i64 {n}.source
  {n}.table = select i1 {n}.special, ptr %places, ptr %pointers
  {n}.at = getelementptr ptr, ptr {n}.table, i64 {n}.index
  {n}.base = load ptr, ptr {n}.at
  {n}.offset.at = getelementptr i64, ptr %offsets, i64 {number}
  {n}.offset = load i64, ptr {n}.offset.at
  {n} = getelementptr i8, ptr {n}.base, i64 {n}.offset"""


_TEXT: Final = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @{threads}()

define i64 @{name}.launch(ptr %pointers, ptr %parameters, ptr %scalars) {{
start:
  %places = alloca [3 x ptr]
  %parts = load i64, ptr %parameters
  %most.at = getelementptr i64, ptr %parameters, i64 1
  %most = load i64, ptr %most.at
  %unit.at = getelementptr i64, ptr %parameters, i64 {workspace}
  %unit = load i64, ptr %unit.at
  %padded.at = getelementptr i64, ptr %parameters, i64 {padded}
  %padded = load i64, ptr %padded.at
  %several = icmp ugt i64 %most, 1
  br i1 %several, label %ask, label %known
ask:
  %set = call i32 @{threads}()
  %set.wide = sext i32 %set to i64
  %is.fewer = icmp slt i64 %set.wide, %most
  %fewer = select i1 %is.fewer, i64 %set.wide, i64 %most
  br label %known
known:
  %threads = phi i64 [1, %start], [%fewer, %ask]
  %own = mul i64 %unit, %threads
  %bytes = add i64 %own, %padded
  %needs = icmp ne i64 %bytes, 0
  br i1 %needs, label %allocate, label %ready
allocate:
  %more = add i64 %bytes, {less}
  %whole = udiv i64 %more, {alignment}
  %rounded = mul i64 %whole, {alignment}
  %memory = call ptr @aligned_alloc(i64 {alignment}, i64 %rounded)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %no, label %allocated
allocated:
  %area = getelementptr i8, ptr %memory, i64 %padded
{pad}
  br label %ready
ready:
  %held = phi ptr [null, %known], [%memory, %{previous}]
  %work = phi ptr [null, %known], [%area, %{previous}]
  %work.at = getelementptr ptr, ptr %places, i64 1
  %padded.place = getelementptr ptr, ptr %places, i64 2
  store ptr null, ptr %places
  store ptr %work, ptr %work.at
  store ptr %held, ptr %padded.place
  %first = getelementptr i64, ptr %parameters, i64 {first}
  br label %loop
loop:
  %number = phi i64 [0, %ready], [%number.next, %part]
  %sources = phi ptr [%first, %ready], [%sources.next, %part]
  %status.before = phi i64 [0, %ready], [%status.after, %part]
  %is.part = icmp slt i64 %number, %parts
  br i1 %is.part, label %part, label %done
part:
  %offsets = getelementptr i64, ptr %sources, i64 {arguments}
  %words = getelementptr i64, ptr %offsets, i64 {arguments}
{reads}
  {call}
  %status.after = or i64 %status.before, %status
  %number.next = add i64 %number, 1
  %sources.next = getelementptr i64, ptr %sources, i64 {part}
  br label %loop
done:
  call void @free(ptr %held)
  ret i64 %status.before
no:
  ret i64 1
}}
"""
