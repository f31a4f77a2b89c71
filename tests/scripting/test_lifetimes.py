"""What is compiled lives as long as someone uses it, and is compiled once."""

import gc
import threading
import weakref

import torch
from torch import nn

import rekindle
from rekindle.scripting.modules import module_inference


def make_function(n: int):
    def f(x):
        return x + n

    return f


def test_a_function_and_its_code_die_together():
    function = make_function(1)
    graph = weakref.ref(rekindle.script(function).graph)
    alive = weakref.ref(function)
    assert graph() is not None
    del function
    gc.collect()
    assert alive() is None
    assert graph() is None


def test_each_closure_is_compiled_for_itself():
    one, two = make_function(1), make_function(2)
    x = torch.zeros(1)
    assert rekindle.script(one)(x).item() == 1
    assert rekindle.script(two)(x).item() == 2
    assert rekindle.script(one).graph is rekindle.script(one).graph


def test_the_type_of_a_module_dies_with_the_last_module():
    class Local(nn.Module):
        def forward(self, x):
            return x + 1

    gc.collect()
    first, second = rekindle.script(Local()), rekindle.script(Local())
    assert first.script_type is second.script_type
    alive = weakref.ref(first._rekindle_binding.concrete)
    module = weakref.ref(first)
    del first
    gc.collect()
    assert module() is None
    assert alive() is not None
    count = len(module_inference._types)
    del second
    gc.collect()
    assert alive() is None
    assert len(module_inference._types) < count


def test_a_module_needs_no_collection_of_cycles():
    module = rekindle.script(nn.Linear(2, 2))
    module(torch.ones(1, 2))
    alive = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert alive() is None
    finally:
        gc.enable()


def test_threads_that_compile_the_same_function():
    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])

        def forward(self, x):
            return self.layers(x)

    modules = [Slow() for _ in range(6)]
    start = threading.Barrier(len(modules))
    results: list = [None] * len(modules)

    def work(index: int) -> None:
        start.wait()
        results[index] = rekindle.script(modules[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(modules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    x = torch.randn(3, 2)
    for module, scripted in zip(modules, results):
        torch.testing.assert_close(scripted(x), module(x))
    assert len({id(scripted.forward.graph) for scripted in results}) == 1
