"""Objects of a library: handles of instances of classes, in Python, C and C++."""

from __future__ import annotations

import copy
import ctypes
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.native_library import Value, _DLTensor, _to_tensor
from rekindle.building.runtime.handles import CALLED, FREEING, IDLE
from rekindle.building.runtime.instances import Instance
from rekindle.building.runtime.objects import ErrorCode
from tests.building.c_process import compiler, memory_checker, run

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_c = pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")


class Counter:
    def __init__(self, count: int) -> None:
        self.count = count


class Node:
    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.next: Node | None = None
        self.counters: list[Counter] = []


class Nodes(nn.Module):
    """Makes objects of classes, one of which may hold itself, and keeps one."""

    def __init__(self) -> None:
        super().__init__()
        self.last = Node(torch.zeros(2))
        self.values: list[Tensor] = []

    @rekindle.export
    def count(self, start: int) -> Counter:
        return Counter(start)

    @rekindle.export
    def increment(self, counter: Counter) -> int:
        counter.count += 1
        if counter.count < 0:
            raise ValueError("negative")
        return counter.count

    @rekindle.export
    def push(self, value: Tensor, counter: Counter, following: Node | None) -> Node:
        found = Node(value)
        found.next = following
        found.counters.append(counter)
        self.last = found
        return found

    @rekindle.export
    def close_circle(self, first: Node, last: Node) -> bool:
        last.next = first
        return first is last

    @rekindle.export
    def sum(self, node: Node, steps: int) -> Tensor:
        total = torch.zeros(2)
        at: Node | None = node
        for _ in range(steps):
            if at is not None:
                total = total + at.value
                at = at.next
        return total

    @rekindle.export
    def latest(self) -> tuple[Node, list[Node], dict[str, Counter]]:
        return self.last, [self.last, self.last], {"first": self.last.counters[0]}

    @rekindle.export
    def grow(self, node: Node) -> int:
        node.value.add_(1)
        self.values.append(node.value)
        return len(self.values)

    @rekindle.export
    def grown(self) -> list[Tensor]:
        return self.values

    @rekindle.export
    def first(self, pair: tuple[Tensor, int]) -> Tensor:
        return pair[0]

    @rekindle.export
    def which(self, x: Any) -> str:
        if isinstance(x, Counter):
            return "counter"
        return "node" if isinstance(x, Node) else "other"

    @rekindle.export
    def either(self, x: Counter | int | None) -> int:
        if x is None:
            return -1
        return x if isinstance(x, int) else x.count


def built(folder: Path, **options: Any) -> rekindle.Build:
    row, node, counter = torch.ones(2), Node(torch.ones(2)), Counter(1)
    examples = {
        "count": [(1,)],
        "increment": [(counter,)],
        "push": [(row, counter, None), (row, counter, node)],
        "close_circle": [(node, Node(row))],
        "sum": [(node, 1)],
        "latest": [],
        "grow": [(node,)],
        "grown": [()],
        "first": [((row, 1),)],
        "which": [],
        "either": [(1,), (None,)],
    }
    return rekindle.build(rekindle.script(Nodes()), folder, examples, freestanding=True, **options)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> rekindle.Build:
    return built(tmp_path_factory.mktemp("nodes"), cpu="x86-64-v3")


@pytest.fixture
def library(build: rekindle.Build) -> rekindle.NativeLibrary:
    return rekindle.NativeLibrary(build.folder)


def test_the_program_changes_the_object_of_the_caller(library: rekindle.NativeLibrary) -> None:
    counter, other = library.call("count", 5), library.call("count", 5)
    assert [library.call("increment", each) for each in (counter, counter, other)] == [6, 7, 6]
    assert (counter.unpack(), other.unpack()) == ((7,), (6,))


def test_a_tuple_of_attributes_becomes_an_object(library: rekindle.NativeLibrary) -> None:
    assert library.call("increment", (5,)) == 6
    node = library.call("push", torch.ones(2), (3,), None)
    assert library.call("sum", (torch.full((2,), 2.0), node, []), 2).tolist() == [3.0, 3.0]


def test_one_object_in_several_values(library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", 1)
    pushed = library.call("push", torch.tensor([1.0, 2.0]), counter, None)
    last, both, by_name = library.call("latest")
    for each in (last, *both):
        assert library.call("close_circle", each, pushed) is True
    library.call("increment", by_name["first"])
    del last, both, by_name
    assert counter.unpack() == (2,)
    value, following, counters = pushed.unpack()
    assert (value.tolist(), counters[0].unpack()) == ([1.0, 2.0], (2,))
    assert library.call("close_circle", following, pushed) is True


def test_long_lists_and_circles(library: rekindle.NativeLibrary) -> None:
    """Tensors of the caller are copied: the memory of each is used again for the next."""
    row, counter = torch.zeros(2), library.call("count", 0)
    first = node = library.call("push", row, counter, None)
    for index in range(2000):
        node = library.call("push", row.fill_(index), counter, node)
    row.fill_(-1)
    assert library.call("sum", node, 3000).tolist() == [1999000.0] * 2
    assert library.call("close_circle", node, first) is False
    assert library.call("sum", node, 2002).tolist() == [1999000.0 + 1999] * 2
    assert library.call("push", row.fill_(7), counter, node).unpack()[0].tolist() == [7.0, 7.0]


def test_parameters_of_several_types(library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", 5)
    node = library.call("push", torch.ones(2), counter, None)
    assert [library.call("which", each) for each in (counter, node, 1)] == ["counter", "node", "other"]
    assert [library.call("either", each) for each in (counter, 3, None, (4,))] == [5, 3, -1, 4]


def test_wrong_objects(build: rekindle.Build, library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", 5)
    node = library.call("push", torch.ones(2), counter, None)
    other = rekindle.NativeLibrary(build.folder)
    refused = [
        (library, "increment", (node,), "an object is of another class than the method takes"),
        (library, "sum", (counter, 1), "an object is of another class than the method takes"),
        (library, "sum", ((torch.ones(2), None), 1), "an argument is of kind 7, which is not that of its type"),
        (library, "either", (node,), "an argument is of kind 10, which is not that of its type"),
        (library, "count", (counter,), "an argument is of kind 10, which is not that of its type"),
        (library, "first", (counter,), "an argument is of kind 10, which is not that of its type"),
        (other, "increment", (counter,), "an object was freed, or belongs to another instance"),
        (other, "which", (counter,), "an object was freed, or belongs to another instance"),
    ]
    for owner, method, arguments, message in refused:
        with pytest.raises(rekindle.LibraryError) as raised:
            owner.call(method, *arguments)
        assert str(raised.value) == message


def test_results_share_no_memory_with_objects(library: rekindle.NativeLibrary) -> None:
    """Neither unpacked attributes nor the items of a list that the instance keeps."""
    node = library.call("push", torch.zeros(2), library.call("count", 1), None)
    assert library.call("grow", node) == 1
    unpacked, kept = Value(), Value()
    code = library._function("unpack", ctypes.c_int32, *[ctypes.c_void_p] * 3)
    assert code(library._instance, ctypes.byref(node._value), ctypes.byref(unpacked)) == 0
    call = library._function("grown", ctypes.c_int32, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p)
    assert call(library._instance, None, 0, ctypes.byref(kept)) == 0
    library.call("grow", node)
    for result in (unpacked, kept):
        items = (Value * result.count).from_address(result.payload.address)
        tensor = ctypes.cast(items[0].payload.address, ctypes.POINTER(_DLTensor)).contents
        assert _to_tensor(tensor).tolist() == [1.0, 1.0]
        library._free(result)


def test_objects_are_not_copied(library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", 5)
    with pytest.raises(TypeError) as raised:
        copy.copy(counter)
    assert str(raised.value) == (
        "an object of a native library cannot be copied or pickled: pass the attributes of unpack()"
    )
    assert library.call("increment", counter) == 6


def test_an_error_leaves_objects_as_they_are(library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", -5)
    with pytest.raises(ValueError, match="negative"):
        library.call("increment", counter)
    assert counter.unpack() == (-4,)


def test_an_object_of_a_closed_library(library: rekindle.NativeLibrary) -> None:
    counter = library.call("count", 5)
    library.close()
    with pytest.raises(rekindle.LibraryError) as raised:
        counter.unpack()
    assert str(raised.value) == "the instance is a null pointer"


def test_what_the_headers_declare(build: rekindle.Build) -> None:
    text = build.header.read_text()
    counter, node = (f"{__name__}.{each}" for each in ("Counter", "Node"))
    assert f"__torch__.{counter}(count: int)\n" in text
    assert (
        f"__torch__.{node}(value: Tensor, next: Optional[__torch__.{node}], counters: List[__torch__.{counter}]) */\n"
    ) in text
    assert "int32_t net_unpack(net_instance *instance, const net_value *object, net_value *result);" in text


def test_libraries_without_objects_do_not_unpack(tmp_path: Path) -> None:
    plain = rekindle.build(rekindle.script(lambda x: x * 2), tmp_path, [(torch.ones(2),)])
    assert "unpack" not in plain.header.read_text() + plain.cpp_header.read_text()
    assert b"net_unpack" not in plain.library.read_bytes()


C = """
#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static net_instance *net;

static void show(const char *what, int32_t code) {
  printf("%s: %d %s\\n", what, code, code ? net_error(net) : "");
}

static net_value call(int32_t (*method)(net_instance *, const net_value *, int64_t, net_value *), int64_t count,
                      net_value a, net_value b, net_value c) {
  net_value arguments[3] = {a, b, c}, result;
  show("call", method(net, arguments, count, &result));
  return result;
}

int main(int argc, char **argv) {
  net_instance *other;
  if (argc != 2 || net_open(argv[1], &net) || net_open(argv[1], &other)) return 1;
  net_value none = net_none(), result;
  net_value counter = call(net_count, 1, net_int(5), none, none), copy = counter;
  net_value changed[4] = {counter, counter, counter, counter};
  changed[0].i++, changed[1].i = -1, changed[2].i += (int64_t)1 << 32, changed[3].count = 0;
  for (int i = 0; i < 4; i++) call(net_increment, 1, changed[i], none, none);
  show("another instance", net_increment(other, &counter, 1, &result));
  show("unpack null", net_unpack(net, NULL, &result));
  show("unpack to null", net_unpack(net, &counter, NULL));
  show("unpack an int", net_unpack(net, &none, &result));
  show("unpack", net_unpack(net, &counter, &result));
  printf("%d %lld\\n", (int)result.kind, (long long)result.items[0].i);
  net_free(&result);

  /* The tensor is freed after the call, and the object has a copy. */
  float *data = malloc(8);
  int64_t shape[1] = {2};
  data[0] = 1, data[1] = 2;
  DLTensor x = {data, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
  net_value node = call(net_push, 3, net_tensor(&x), counter, none);
  net_value second = call(net_push, 3, net_tensor(&x), counter, node);
  memset(data, 0, 8);
  free(data);
  net_value sum = call(net_sum, 2, second, net_int(2), none);
  printf("%g %g\\n", ((float *)sum.t->data)[0], ((float *)sum.t->data)[1]);
  net_free(&sum);

  net_free(&counter);
  net_free(&counter);
  printf("%d\\n", (int)counter.kind);
  call(net_increment, 1, copy, none, none);
  net_free(&copy);                                   /* it was freed: nothing happens */
  net_value again = call(net_count, 1, net_int(9), none, none);
  call(net_increment, 1, again, none, none);
  show("the nodes still have the counter", net_latest(net, NULL, 0, &result));
  net_value counters = result.items[2], first = counters.items[1];
  show("increment", net_increment(net, &first, 1, &sum));
  printf("%lld\\n", (long long)sum.i);
  net_free(&result);
  net_free(&node);
  net_value kept = again;
  net_close(net);                                    /* objects are freed; values still have to be */
  net = other;
  call(net_increment, 1, kept, none, none);
  net_free(&second);
  net_free(&again);
  net_close(other);
  return 0;
}
"""
FOREIGN = "call: 10 an object was freed, or belongs to another instance"
EXPECTED = [
    "call: 0 ",
    *[FOREIGN] * 4,
    f"another instance: 10 {FOREIGN[9:]}",
    "unpack null: 10 the arguments or the result are a null pointer",
    "unpack to null: 10 the arguments or the result are a null pointer",
    "unpack an int: 10 the value is not an object of this instance, or was freed",
    "unpack: 0 ",
    "7 5",
    "call: 0 ",
    "call: 0 ",
    "call: 0 ",
    "2 4",
    "0",
    FOREIGN,
    "call: 0 ",
    "call: 0 ",
    "the nodes still have the counter: 0 ",
    "increment: 0 ",
    "6",
    FOREIGN,
]


def run_c(source: str, build: rekindle.Build, *options: str) -> str:
    path = build.folder / "program.c"
    path.write_text(source)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", *options, "-I", str(build.folder), "-L", str(build.folder)]
    command = [str(compiler()), *flags, "-o", str(path.with_suffix("")), str(path), f"-l{build.name}"]
    subprocess.run([*command, f"-Wl,-rpath,{build.folder}"], check=True, capture_output=True, text=True)
    found = [*(memory_checker() or ()), str(path.with_suffix("")), str(build.weights)]
    return subprocess.run(found, check=True, capture_output=True, text=True).stdout


@needs_c
def test_objects_in_c(build: rekindle.Build) -> None:
    assert run_c(C, build).splitlines() == EXPECTED


THREADS = """
#include "net.h"
#include <pthread.h>

static net_instance *net;
static net_value counters[400];

static void *work(void *number) {
  for (long i = (long)number; i < 400; i += 4) net_free(&counters[i]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2 || net_open(argv[1], &net)) return 1;
  for (int i = 0; i < 400; i++) {
    net_value start = net_int(i);
    if (net_count(net, &start, 1, &counters[i])) return 2;
  }
  pthread_t threads[4];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
  int wrong = 0;
  for (int i = 0; i < 300; i++) {
    net_value start = net_int(i), counter, count;
    if (net_count(net, &start, 1, &counter)) return 3;
    wrong += net_increment(net, &counter, 1, &count) != NET_OK || count.i != i + 1;
    net_free(&counter);
  }
  net_close(net); /* other threads may still free their values */
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return wrong != 0;
}
"""


@needs_c
def test_values_are_freed_on_other_threads(build: rekindle.Build) -> None:
    run_c(THREADS, build, "-pthread")


STATES = """
#include "net.h"
#include <stdio.h>

static int64_t *state;
static int yields;

/* The library waits with this function. Another thread would now be done with the free. */
int sched_yield(void) {
  if (++yields == 3) *state = IDLE;
  return 0;
}

int main(int argc, char **argv) {
  net_instance *net;
  if (argc != 2 || net_open(argv[1], &net)) return 1;
  state = ((int64_t **)net)[HANDLES];
  net_value start = net_int(5), counter = net_none(), result;
  *state = FREEING;
  int32_t code = net_count(net, &start, 1, &counter);
  printf("a call while a handle is freed: %d, after %d yields\\n", code, yields);
  yields = 0, *state = CALLED;
  code = net_increment(net, &counter, 1, &result);
  printf("a call while another call runs: %d, after %d yields\\n", code, yields);
  net_free(&counter);
  printf("a handle is freed while a call runs: after %d yields\\n", yields);
  net_close(net);
  return 0;
}
"""


@needs_c
def test_calls_wait_for_a_handle_that_is_freed_but_not_for_each_other(build: rekindle.Build) -> None:
    """The program plays the other thread: it sets the state of the instance, and ends it when the library waits."""
    constants = {"IDLE": IDLE, "CALLED": CALLED, "FREEING": FREEING, "HANDLES": field_index(Instance, "handles")}
    found = run_c(STATES, build, *(f"-D{name}={value}" for name, value in constants.items()))
    assert found.splitlines() == [
        "a call while a handle is freed: 0, after 3 yields",
        f"a call while another call runs: {ErrorCode.BUSY}, after 0 yields",
        "a handle is freed while a call runs: after 3 yields",
    ]


def test_objects_are_dropped_on_another_thread(library: rekindle.NativeLibrary) -> None:
    """A call never fails because another thread drops objects. It takes a while to free an object with many others."""
    row, counter = torch.zeros(2), library.call("count", 0)
    counts: list[int] = []
    dropped: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def drop() -> None:
        while dropped.get() is not None:
            pass

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        for _ in range(20):
            node = library.call("push", row, counter, (row, None, [(1,)] * 5000))
            library.call("push", row, counter, None)  # now the instance holds another node
            dropped.put(node)
            del node
            counts += [library.call("increment", counter) for _ in range(50)]
    finally:
        dropped.put(None)
        thread.join()
    assert counts == list(range(1, 1001))


@needs_c
def test_objects_at_several_levels(tmp_path: Path) -> None:
    several = built(tmp_path, cpu="v2,v3")
    assert run_c(C, several).splitlines() == EXPECTED


@needs_c
def test_memory_of_objects_in_arguments(build: rekindle.Build, tmp_path: Path) -> None:
    """The driver unpacks objects in results."""
    row = torch.ones(2)
    calls = [(row, (1,), None), (row, (1.5,), None), (row, (1,), (row, None, [(2,), (3,)])), (row, (1,), (row, 1, []))]
    answers = run(build, "push", calls, tmp_path, prefix=memory_checker() or ())
    assert [each.code for each in answers] == [0, 10, 0, 10]
    calls = [(row, (1,), None)]
    (answer,) = run(build, "push", calls, tmp_path, prefix=memory_checker() or ())
    assert answer.value[0].tolist() == [1.0, 1.0]
    assert answer.value[1:] == (None, [(1,)])


@pytest.mark.skipif(
    compiler() is None or shutil.which("g++") is None, reason="this machine has no compilers of C and C++"
)
def test_the_example(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    shutil.copytree(EXAMPLES / "objects", folder, ignore=shutil.ignore_patterns("means", "main", "main_cpp"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(EXAMPLES.parent)
    subprocess.run(["make", "all"], cwd=folder, env=environment, check=True, capture_output=True)
    for program, lines in (
        ("main", ["mean 2 3 5.5", "an object was freed, or belongs to another instance"]),
        (
            "main_cpp",
            [
                "mean 2 3 5.5",
                "2 rows",
                "there are no rows",
                '  at build.py, line 22: raise ValueError("there are no rows")',
            ],
        ),
    ):
        found = subprocess.run([folder / program], cwd=folder, check=True, capture_output=True, text=True)
        assert found.stdout.splitlines() == lines
