"""Libraries called from C++, Rust and Node, in processes without Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building.cpp_header import cpp_header_text
from rekindle.building.header import Interface, Method
from tests.building.c_process import memory_checker

EXAMPLES = Path(__file__).parents[2] / "examples"

needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no C++ compiler")


def _made(language: str, folder: Path, target: str = "main", command: tuple[str, ...] = ("./main",)) -> str:
    """Build an example in a copy of its folder, and return what it prints."""
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("net", "main", "net.node"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(EXAMPLES.parent)
    place = folder / language
    subprocess.run(["make", target], cwd=place, env=environment, check=True, capture_output=True)
    return subprocess.run(command, cwd=place, check=True, capture_output=True, text=True).stdout


def _has_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("cc") is None:
        return False
    return (Path(node).resolve().parents[1] / "include" / "node" / "node_api.h").exists()


@needs_cpp
def test_the_example_in_cpp(tmp_path: Path) -> None:
    assert _made("cpp", tmp_path / "x") == "versicolor (0.174 0.675 0.151)\nversicolor (0.319 0.516 0.165)\n"


@pytest.mark.skipif(shutil.which("rustc") is None, reason="this machine has no Rust compiler")
def test_the_example_in_rust(tmp_path: Path) -> None:
    assert _made("rust", tmp_path / "x") == "versicolor\nversicolor\n"


@pytest.mark.skipif(not _has_node(), reason="this machine has no Node with the headers of its API, or no C compiler")
def test_the_example_in_node(tmp_path: Path) -> None:
    lines = _made("node", tmp_path / "x", "net.node", ("node", "main.js")).splitlines()
    assert lines == [
        "versicolor 0.174 0.675 0.151",
        "versicolor 0.319 0.516 0.165",
        "11 the library has no kernel for such sizes or dtypes: build it with an example that has them",
        "10 the file of weights cannot be opened",
    ]


class Everything(nn.Module):
    """Takes and returns values of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(
        self, x: Tensor, words: list[str], scale: float = 0.5, shift: int | None = None, name: str = "é\n"
    ) -> tuple[Tensor, dict[str, list[int]], bool, int | None, str]:
        self.calls += 1
        if len(words) == 0:
            raise ValueError("there are no words")
        lengths: dict[str, list[int]] = {}
        for word in words:
            lengths[word] = [len(word), self.calls]
        return x * scale, lengths, scale > 0.4, shift, name

    @rekindle.export
    def new(self, table: list[list[int]], flag: bool) -> int:
        total = 0
        for row in table:
            total += sum(row)
        return total if flag else -total

    @rekindle.export
    def turned(self, z: complex) -> tuple[complex, float]:
        return z * 1j, abs(z)


MAIN = r"""
#include <cassert>
#include <cstdio>
#include "net.hpp"
#include "net.hpp"

int main(int, char **argv) {
  const std::string folder = argv[1];
  net::instance first(folder + "/net.weights");
  net::instance net(std::move(first));
  const double elements[3] = {1.0, 2.0, 4.0};
  const net::tensor x(elements, {3, 1});
  const std::vector<std::string> words = {"a", "bcd"};
  for (int i = 1; i <= 2; i++) {
    net::value result = net.forward(x, words, 0.25, 7, std::string_view("name"));
    assert(result.kind() == NET_TUPLE && result.size() == 5);
    assert(result[0].shape() == (std::vector<int64_t>{3, 1}) && result[0].data<double>()[2] == 1.0);
    assert(result[1].size() == 4 && result[1][2].as_string() == "bcd");
    assert(result[1][3][0].as_int() == 3 && result[1][3][1].as_int() == i);
    assert(!result[2].as_bool() && result[3].as_int() == 7 && result[4].as_string() == "name");
    try { result[0].data<float>(); assert(false); } catch (const net::error &e) { assert(e.code == NET_TYPE_ERROR); }
    try { result[5]; assert(false); } catch (const net::error &e) { assert(e.code == NET_INDEX_ERROR); }
    try { result[2].as_int(); assert(false); } catch (const net::error &e) { assert(e.code == NET_TYPE_ERROR); }
  }
  net::value defaults = net.forward(x, std::vector<const char *>{"z"});
  assert(defaults[0].data<double>()[2] == 2.0 && defaults[2].as_bool() && defaults[3].is_none());
  assert(defaults[4].as_string() == "\u00e9\n");
  defaults = net.forward(x, words, 1.0, nullptr);
  assert(defaults[1].size() == 4);
  const net::value turned = net.turned(std::complex<double>(3.0, 4.0));
  assert(turned[0].as_complex() == std::complex<double>(-4.0, 3.0) && turned[1].as_float() == 5.0);
  assert(net.new_(std::vector<std::vector<int>>{{1, 2}, {}, {3}}, false).as_int() == -6);
  try {
    net.forward(x, std::vector<std::string>());
    assert(false);
  } catch (const net::error &e) {
    assert(e.code == NET_VALUE_ERROR);
    std::puts(e.what());
  }
  try {
    net::instance wrong(folder + "/nothing.weights");
    assert(false);
  } catch (const std::exception &e) {
    std::puts(e.what());
  }
}
"""


@needs_cpp
def test_values_of_every_kind_in_cpp(tmp_path: Path) -> None:
    module = rekindle.script(Everything())
    example = (torch.ones(3, 1, dtype=torch.float64), ["a"], 0.5, 1, "b")
    examples = {"forward": [example, (*example[:3], None, "b")], "new": [([[1]], True)], "turned": [(1j,)]}
    rekindle.build(module, tmp_path, examples, freestanding=True, cpu="x86-64-v3")
    (tmp_path / "main.cpp").write_text(MAIN)
    flags = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-g", "-Wl,-rpath,$ORIGIN")
    command = ["g++", *flags, "-o", "main", "main.cpp", "-L.", "-lnet"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    prefix = memory_checker() or ()
    found = subprocess.run([*prefix, tmp_path / "main", tmp_path], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    first, place, last = found.stdout.splitlines()
    assert (first, place.partition(", line")[0]) == ("there are no words", "  at test_cpp.py")
    assert last == "the file of weights cannot be opened"


@pytest.mark.parametrize("name", ["delete", "switch", "default", "true", "bool"])
def test_methods_with_names_that_are_keywords(name: str) -> None:
    text = cpp_header_text("net", Interface([Method(name, f"{name}() -> int", 0, ())], []))
    assert f"  value {name}_() {{ return invoke_(net_{name}); }}\n" in text
