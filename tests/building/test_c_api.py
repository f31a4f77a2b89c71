"""The C API under misuse, from several threads, and beside other libraries: codes, messages, no invalid access."""

import ctypes
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from tests.building.c_process import compiler, memory_checker

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")


def _program(x: Tensor, table: Dict[str, int]) -> Tuple[Tensor, List[str], Dict[str, int]]:
    keys = [key.strip() for key in table.keys()]
    return x * 2 + len(keys), keys, {key: value + 1 for key, value in table.items()}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    examples = [(torch.ones(2, 3), {"a": 1})]
    return rekindle.build(rekindle.script(_program), folder, examples, cpu="x86-64-v3", freestanding=True)


def compiled(source, build, *options, command=None):
    """Return a program that is linked with a library by the linker of the machine."""
    path = build.folder / Path(source).stem
    warnings = ("-Wall", "-Wextra", "-Werror")
    library = ("-I", build.folder, "-L", build.folder, f"-l{build.name}", "-Wl,-rpath," + str(build.folder))
    command = [command or compiler(), *warnings, *options, "-o", path, source, *library]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return path


NO_ITEMS = "an argument has items, and no pointer to them"
UNKNOWN = "a tensor has a dtype or a rank that is not known"
NO_MEMORY_HAS = "a tensor has sizes or strides that no memory has"
MISUSE = {
    "an instance that is not open": "the instance was not opened: its file of weights was refused",
    "good": "",
    "no arguments": "the method takes another number of arguments than 0",
    "null arguments": "the arguments or the result are a null pointer",
    "null result": "the arguments or the result are a null pointer",
    "a string of -5 bytes": "a string has -5 bytes",
    "a string without bytes": NO_ITEMS,
    "a string with invalid UTF-8": "a string is not UTF-8",
    "rank -1": UNKNOWN,
    "rank 33": UNKNOWN,
    "rank 1": "argument 0 has another rank than the library was built for",
    "no sizes": "a tensor has no sizes",
    "rank 0": "argument 0 has another rank than the library was built for",
    "no memory": "a tensor has no memory",
    "no memory, large": "a tensor has no memory",
    "device": "a tensor is not in the memory of the CPU",
    "dtype": "argument 0 has another dtype than the library was built for",
    "unknown dtype": UNKNOWN,
    "lanes": UNKNOWN,
    "a negative size": "a tensor has a negative size",
    "strides": "",
    "strides of 0": "",
    "a negative stride": "a tensor has a negative stride",
    "an offset": "",
    "2 to the 64 elements": NO_MEMORY_HAS,
    "no element, and a size of 2 to the 62": NO_MEMORY_HAS,
    "the largest stride": NO_MEMORY_HAS,
    "many elements that are one": NO_MEMORY_HAS,
    "the largest rank": UNKNOWN,
    "the smallest rank": UNKNOWN,
    "an odd offset": "",
    "good again": "",
}


def _kinds():
    for kind in range(-2, 12):
        wrong = f"an argument is of kind {kind}, which is not that of its type"
        items = NO_ITEMS if kind in (4, 7, 8) else wrong
        yield "kind of a tensor", "a tensor is a null pointer" if kind == 5 else items
        if kind != 1:
            yield "kind in a dict", items
        yield "kind of a key", items


@pytest.mark.parametrize("options", [("-std=c99",), ("-std=c11", "-Wl,-z,now")])
def test_misuse(build, options):
    program = compiled(HERE / "misuse.c", build, *options)
    command = [*(memory_checker() or ()), program, build.weights]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    expected = list(MISUSE.items())
    counts = [("count", f"the number of arguments is {count}") for count in (-1, -(1 << 62))]
    others = [
        ("count", f"the method takes another number of arguments than {count}") for count in (0, 1, 3, 1000, 1 << 61)
    ]
    dicts = [("dict", "an argument has -1 items"), ("dict", f"an argument has {2**63 - 1} items"), ("dict", NO_ITEMS)]
    expected[5:5] = [*counts, *others, *_kinds(), *dicts]
    lines = [f"{what}: {10 if message else 0} {message}" for what, message in expected]
    assert found.stdout.split("\n") == [*lines, ""]


THREADS = """
#include "net.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *weights;

static void *work(void *number) {
  net_instance *net;
  float data[6];
  int64_t shape[2] = {2, 3};
  int wrong = net_open(weights, &net) != NET_OK;
  for (int i = 0; i < 300; i++) {
    for (int j = 0; j < 6; j++) data[j] = (float)(i + j) + (float)(long)number;
    DLTensor x = {data, {1, 0}, 2, {2, 32, 1}, shape, 0, 0};
    net_value pair[2] = {net_string(" key", 4), net_int(i)}, arguments[2] = {net_tensor(&x), net_list(pair, 1)}, result;
    arguments[1].kind = NET_DICT;
    if (net_call(net, arguments, 2, &result)) { wrong++; continue; }
    const float *found = (const float *)result.items[0].t->data;
    for (int j = 0; j < 6; j++) wrong += found[j] != data[j] * 2 + 1;
    wrong += result.items[2].items[1].i != i + 1;
    net_free(&result);
    if (i % 50 == 0) net_close(net), wrong += net_open(weights, &net) != NET_OK;
    wrong += net_call(net, arguments, 1, &result) != NET_ARGUMENT_ERROR;
  }
  net_close(net);
  return (void *)(long)wrong;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  weights = argv[1];
  pthread_t threads[4];
  long wrong = 0;
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(i * 1000));
  for (int i = 0; i < 4; i++) {
    void *found;
    pthread_join(threads[i], &found);
    wrong += (long)found;
  }
  return wrong != 0;
}
"""


def test_threads_with_an_instance_each(build):
    source = build.folder / "threads.c"
    source.write_text(THREADS)
    program = compiled(source, build, "-std=c11", "-pthread")
    subprocess.run([*(memory_checker() or ()), program, build.weights], check=True, capture_output=True)


LOADING = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef struct { int64_t kind, payload, count; } value;

static int use(const char *folder, const char *name, int64_t expected) {
  char text[4096];
  snprintf(text, sizeof text, "%s/lib%s.so", folder, name);
  void *library = dlopen(text, RTLD_NOW | RTLD_GLOBAL), *net = 0;
  if (!library) return 1;
  snprintf(text, sizeof text, "%s_open", name);
  int32_t (*open)(const char *, void **) = (int32_t (*)(const char *, void **))dlsym(library, text);
  snprintf(text, sizeof text, "%s_call", name);
  int32_t (*call)(void *, value *, int64_t, value *) =
      (int32_t (*)(void *, value *, int64_t, value *))dlsym(library, text);
  snprintf(text, sizeof text, "%s_close", name);
  void (*close)(void *) = (void (*)(void *))dlsym(library, text);
  snprintf(text, sizeof text, "%s/%s.weights", folder, name);
  value result;
  int wrong = open(text, &net) || call(net, 0, 0, &result) || result.payload != expected;
  close(net);
  return wrong || (expected % 2 && dlclose(library));
}

int main(int argc, char **argv) {
  int wrong = 0;
  for (int i = 0; i < 50; i++)
    for (int j = 1; j < argc; j += 2) wrong += use(argv[j], argv[j + 1], j / 2 + 1);
  return wrong;
}
"""


def test_libraries_beside_each_other(tmp_path):
    """Libraries whose functions have the same names inside, in one process, loaded again and again."""

    @rekindle.script
    def first() -> int:
        return len([1])

    @rekindle.script
    def second() -> int:
        return len([1, 2])

    @rekindle.script
    def third() -> int:
        return len("abc")

    arguments = []
    for name, program in (("one", first), ("two", second), ("three", third)):
        rekindle.build(program, tmp_path / name, name=name, cpu="x86-64-v3")
        arguments += [tmp_path / name, name]
    source = tmp_path / "loading.c"
    source.write_text(LOADING)
    program = tmp_path / "loading"
    subprocess.run([compiler(), "-o", program, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_BIND_NOW": "1"}
    subprocess.run([*(memory_checker() or ()), program, *arguments], check=True, env=environment, capture_output=True)


def test_damaged_weights_of_every_kind(tmp_path):
    """A file with one other byte, or of another size, is refused, and the process continues."""
    module = torch.nn.Linear(3, 4)
    build = rekindle.build(rekindle.script(module), tmp_path, [(torch.ones(2, 3),)])
    library = ctypes.CDLL(str(build.library))
    whole = build.weights.read_bytes()
    path = tmp_path / "damaged"
    generator = random.Random(0)
    used = [*range(40), *range(64, len(whole))]  # the rest of the header is not used
    damaged = [whole[:size] for size in (0, 1, 8, 39, 63, 64, 65, len(whole) - 1)]
    damaged += [whole + b"\0", whole * 2, bytes(len(whole))]
    for place in generator.sample(used, 60):
        damaged.append(whole[:place] + bytes([whole[place] ^ (1 << generator.randrange(8))]) + whole[place + 1 :])
    # Changes that cancel each other in a sum: two signs, two words that change places, a step to each side.
    signs = bytearray(whole)
    signs[64 + 7] ^= 128
    signs[64 + 15] ^= 128
    steps = list(struct.unpack_from("<2q", whole, 64))
    damaged += [
        bytes(signs),
        whole[:64] + whole[72:80] + whole[64:72] + whole[80:],
        whole[:64] + struct.pack("<2q", steps[0] + 3, steps[1] - 1) + whole[80:],
    ]
    for content in damaged:
        path.write_bytes(content)
        instance = ctypes.c_void_p()
        assert library.net_open(str(path).encode(), ctypes.byref(instance)) == 10
        library.net_close(instance)
    for other in (tmp_path, Path("/dev/null"), Path("/dev/zero")):
        assert library.net_open(str(other).encode(), ctypes.byref(instance)) == 10
        library.net_close(instance)
    assert library.net_open(str(build.weights).encode(), ctypes.byref(instance)) == 0
    library.net_close(instance)


def test_weights_of_another_library(tmp_path):
    """Of the same size, too."""
    linear, other = torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    builds = [
        rekindle.build(rekindle.script(each), tmp_path / name, [(torch.ones(2, 3),)])
        for name, each in (("linear", linear), ("other", other))
    ]
    sizes = {each.weights.stat().st_size for each in builds}
    assert len(sizes) == 1
    shutil.copy(builds[1].weights, builds[0].weights)
    with pytest.raises(rekindle.LibraryError) as raised:
        rekindle.NativeLibrary(tmp_path / "linear")
    assert str(raised.value) == "the file of weights is not that of this library"


CPLUSPLUS = """
#include "net.h"

int main() {
  net_value five = net_int(5), text = net_string("a", 1), list = net_list(&five, 1);
  net_free(nullptr);
  return five.i == 5 && text.count == 1 && list.items[0].i == 5 && net_none().kind == NET_NONE ? 0 : 1;
}
"""


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_the_header_in_cplusplus(build, standard):
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("this machine has no compiler of C++")
    source = build.folder / "header.cpp"
    source.write_text(CPLUSPLUS)
    program = compiled(source, build, f"-std={standard}", "-pedantic", command=found)
    subprocess.run([program], check=True)
