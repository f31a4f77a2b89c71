"""Errors at run time show the lines that the user wrote: Python's own traceback of the same program, frame by frame."""

from __future__ import annotations

import importlib.util
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import Source
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import TENSOR, FunctionType
from rekindle.runtime.executor import execute, optimized_execution
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from tests.versions.differences import NO_FLOOR_DIVISION

USER = """\
import torch


def f(x, z):
    w = x * 2
    y = x + z
    return y + w


def loop(x, n):
    for i in range(n):
        x = x // (2 - i)
    return x


def divide(a, b):
    return a // b


def half(n):
    é = "ünïcode"; m = divide(n, 0)
    return m


def twice(n):
    return (half(n) +
            half(n))


def refuse(n):
    if n > 2:
        raise ValueError("no more")
    return n


def pick(items, i):
    return items[i]
"""


@pytest.fixture
def user(tmp_path: Path) -> ModuleType:
    """The module ``user``, whose functions can be run by Python itself."""
    path = tmp_path / "user.py"
    path.write_text(USER, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_source(user: ModuleType, name: str) -> Source:
    """The source of one function, cut out of its file."""
    start = USER.index(f"def {name}(")
    end = USER.find("\n\n\n", start)
    first_line = USER.count("\n", 0, start) + 1
    return Source(USER[start : end if end > 0 else len(USER)], user.__file__, first_line)


def compiled(user: ModuleType, name: str, text: str, **places: str | GraphFunction) -> GraphFunction:
    """A function of the graph ``text``. ``places`` are the fragments of source that the nodes of these outputs have
    for.

    A fragment ``name@record`` of a prim::CallFunction also says what it calls.
    """
    graph = parse_graph(text)
    source = function_source(user, name)
    for output, fragment in places.items():
        if isinstance(fragment, GraphFunction):
            continue
        node = node_of(graph, output)
        start = source.text.index(fragment)
        node.set_range(source.range(start, start + len(fragment)))
    for output, record in places.items():
        if isinstance(record, GraphFunction):
            node = node_of(graph, output.removesuffix("_calls"))
            constant = graph.create("prim::Constant", types=[FunctionType(record)], attributes={"name": record.name})
            node.insert_input(0, graph.block.prepend(constant).output)
    return GraphFunction(f"__torch__.user.{name}", graph, FunctionSchema(name))


def node_of(graph: Graph, name: str) -> Any:
    value = graph.find_value(name)
    if value is not None:
        return value.node
    (node,) = (node for node in graph.all_nodes() if node.kind.endswith(f"::{name}"))
    return node


def text_of(function: Callable[[], object], file: str) -> str:
    """The traceback of the error that ``function`` raises, from the first frame in ``file`` on."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (any error at all)
        function()
    entries = caught.value.__traceback__
    while entries is not None and entries.tb_frame.f_code.co_filename != file:
        entries = entries.tb_next
    return "".join(traceback.format_exception(type(caught.value), caught.value, entries)).replace(file, "user.py")


def without_carets(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not re.fullmatch(r"\s+[~^]+\n", line))


def check(
    user: ModuleType, record: GraphFunction, eager: Callable[..., object], arguments: list[object], text: str
) -> None:
    text = text.replace("integer division or modulo by zero", NO_FLOOR_DIVISION)
    assert user.__file__ is not None
    for optimize in (False, True):
        with optimized_execution(optimize):
            found = text_of(lambda: execute(record, arguments), user.__file__)
        # All that Python prints, carets too where it has them.
        assert found == text_of(lambda: eager(*arguments), user.__file__)
        assert without_carets(found) == text


F = """
graph(%x : Tensor, %z : Tensor):
  %2 : int = prim::Constant[value=2]()
  %1 : int = prim::Constant[value=1]()
  %w : Tensor = aten::mul(%x, %2)
  %y : Tensor = aten::add(%x, %z, %1)
  %r : Tensor = aten::add(%y, %w, %1)
  return (%r)
"""


def test_an_error_of_aten(user: ModuleType) -> None:
    record = compiled(user, "f", F, w="x * 2", y="x + z", r="y + w")
    check(
        user,
        record,
        user.f,
        [torch.ones(2), torch.ones(3)],
        """\
Traceback (most recent call last):
  File "user.py", line 6, in f
    y = x + z
RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0
""",
    )


def test_the_whole_traceback_has_one_frame_of_the_package(user: ModuleType) -> None:
    record = compiled(user, "f", F, w="x * 2", y="x + z", r="y + w")
    with pytest.raises(RuntimeError) as caught:
        execute(record, [torch.ones(2), torch.ones(3)])
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_the_whole_traceback_has_one_frame_of_the_package", "execute", "f"]
    with pytest.raises(RuntimeError) as caught:
        InterpreterState(Code(record.graph, "f")).run([torch.ones(2), torch.ones(3)])
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_the_whole_traceback_has_one_frame_of_the_package", "run", "f"]


LOOP = """
graph(%x : int, %n : int):
  %2 : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=1]()
  %y : int = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : int):
      %d : int = aten::sub(%2, %i)
      %b : int = aten::floordiv(%a, %d)
      -> (%t, %b)
  return (%y)
"""


def test_in_a_loop(user: ModuleType) -> None:
    record = compiled(user, "loop", LOOP, d="2 - i", b="x // (2 - i)", y="for i in range(n):")
    assert execute(record, [7, 2]) == 3
    check(
        user,
        record,
        user.loop,
        [7, 3],
        """\
Traceback (most recent call last):
  File "user.py", line 12, in loop
    x = x // (2 - i)
ZeroDivisionError: integer division or modulo by zero
""",
    )


DIVIDE = """
graph(%a : int, %b : int):
  %q : int = aten::floordiv(%a, %b)
  return (%q)
"""
HALF = """
graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %m : int = prim::CallFunction(%n, %0)
  return (%m)
"""
TWICE = """
graph(%n : int):
  %p : int = prim::CallFunction(%n)
  %q : int = prim::CallFunction(%n)
  %s : int = aten::add(%p, %q)
  return (%s)
"""
TWICE_TEXT = """\
Traceback (most recent call last):
  File "user.py", line 26, in twice
    return (half(n) +
  File "user.py", line 21, in half
    é = "ünïcode"; m = divide(n, 0)
  File "user.py", line 17, in divide
    return a // b
ZeroDivisionError: integer division or modulo by zero
"""


def test_through_two_calls(user: ModuleType) -> None:
    divide = compiled(user, "divide", DIVIDE, q="a // b")
    half = compiled(user, "half", HALF, m="divide(n, 0)", m_calls=divide)
    twice = compiled(user, "twice", TWICE, p="half(n)", p_calls=half, q="half(n)", q_calls=half)
    check(user, twice, user.twice, [3], TWICE_TEXT)
    assert divide.executable is not None


def test_functions_that_were_inlined_are_shown_like_calls(user: ModuleType) -> None:
    twice = compiled(
        user,
        "twice",
        """
graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %q : int = aten::floordiv(%n, %0)
  return (%q)
""",
    )
    node = node_of(twice.graph, "q")
    sources = {name: function_source(user, name) for name in ("twice", "half", "divide")}

    def place(name: str, fragment: str) -> Any:
        start = sources[name].text.index(fragment)
        return sources[name].range(start, start + len(fragment))

    node.callstack = (
        ("__torch__.user.half", place("twice", "half(n)")),
        ("__torch__.user.divide", place("half", "divide(n, 0)")),
    )
    node.range = place("divide", "a // b")
    check(user, twice, user.twice, [3], TWICE_TEXT)


def test_raise_in_user_code(user: ModuleType) -> None:
    record = compiled(
        user,
        "refuse",
        """
graph(%n : int):
  %2 : int = prim::Constant[value=2]()
  %m : str = prim::Constant[value="no more"]()
  %k : str = prim::Constant[value="builtins.ValueError"]()
  %c : bool = aten::gt(%n, %2)
   = prim::If(%c)
    block0():
       = prim::RaiseException(%m, %k)
      -> ()
    block1():
      -> ()
  return (%n)
""".replace("   = prim::If", "  prim::If").replace("       = prim::Raise", "      prim::Raise"),
        RaiseException='raise ValueError("no more")',
    )
    assert execute(record, [1]) == 1
    check(
        user,
        record,
        user.refuse,
        [3],
        """\
Traceback (most recent call last):
  File "user.py", line 32, in refuse
    raise ValueError("no more")
ValueError: no more
""",
    )


def test_an_index_out_of_range(user: ModuleType) -> None:
    record = compiled(
        user,
        "pick",
        """
graph(%items : int[], %i : int):
  %r : int = aten::__getitem__(%items, %i)
  return (%r)
""",
        r="items[i]",
    )
    check(
        user,
        record,
        user.pick,
        [[1, 2], 2],
        """\
Traceback (most recent call last):
  File "user.py", line 37, in pick
    return items[i]
IndexError: list index out of range
""",
    )


def test_python_functions_that_the_program_calls_keep_their_frames(user: ModuleType) -> None:
    schema = FunctionSchema("test::ignored", arguments=(Argument("x", TENSOR),), returns=(Argument("", TENSOR),))
    REGISTRY.register(Operator(schema, operation=lambda x: user.f(x, torch.ones(3))))
    record = compiled(
        user,
        "loop",
        """
graph(%x : Tensor):
  %r : Tensor = test::ignored(%x)
  return (%r)
""",
        r="x // (2 - i)",
    )
    assert user.__file__ is not None
    text = text_of(lambda: execute(record, [torch.ones(2)]), user.__file__)
    here = re.escape(__file__)
    assert re.fullmatch(
        rf"""Traceback \(most recent call last\):
  File "user.py", line 12, in loop
    x = x // \(2 - i\)
  File "{here}", line \d+, in <lambda>
    REGISTRY.register\(Operator\(schema, operation=lambda x: user.f\(x, torch.ones\(3\)\)\)\)
  File "user.py", line 6, in f
    y = x \+ z
RuntimeError: The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 0
""",
        without_carets(text),
    )


def test_the_cause_and_the_class_of_an_error_stay_as_they_are(user: ModuleType) -> None:
    class Own(Exception):
        pass

    cause = KeyError("cause")
    error = Own("own", 1)

    def fail(x: object) -> object:
        raise error from cause

    schema = FunctionSchema("test::own", arguments=(Argument("x", TENSOR),), returns=(Argument("", TENSOR),))
    REGISTRY.register(Operator(schema, operation=fail))
    record = GraphFunction("f", parse_graph("graph(%x : Tensor):\n  %r : Tensor = test::own(%x)\n  return (%r)\n"))
    with pytest.raises(Own) as caught:
        execute(record, [torch.ones(1)])
    assert caught.value is error
    assert caught.value.args == ("own", 1)
    assert caught.value.__cause__ is cause
    assert caught.value.__context__ is None


def test_source_that_stands_in_no_file() -> None:
    source = Source("def g(a, b):\n        # a comment\n        return a // b", "code/__torch__/gone.py", 40, dedent=4)
    graph = parse_graph(DIVIDE)
    start = source.text.index("a // b")
    node_of(graph, "q").set_range(source.range(start, start + 6))
    text = text_of(lambda: execute(GraphFunction("__torch__.g", graph), [1, 0]), "code/__torch__/gone.py")
    assert (
        without_carets(text)
        == f"""\
Traceback (most recent call last):
  File "user.py", line 42, in g
    return a // b
ZeroDivisionError: {NO_FLOOR_DIVISION}
"""
    )
    assert linecache.getline("code/__torch__/gone.py", 42) == "            return a // b\n"


def test_a_graph_without_source_shows_its_instructions() -> None:
    text = text_of(lambda: execute(GraphFunction("__torch__.h", parse_graph(DIVIDE)), [1, 0]), "<code of __torch__.h>")
    assert (
        without_carets(text)
        == f"""\
Traceback (most recent call last):
  File "user.py", line 2, in h
    2 = floordiv move(0), move(1)
ZeroDivisionError: {NO_FLOOR_DIVISION}
"""
    )


def test_an_interrupt_from_the_keyboard_at_any_time() -> None:
    """It shows some place in the program, and is never replaced by an error of the interpreter's own."""
    callee = GraphFunction("g", parse_graph(DIVIDE))
    graph = parse_graph("""
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %s : int = prim::Loop(%n, %t, %one)
    block0(%i : int, %a : int):
      %b : int = prim::CallFunction(%a, %one)
      -> (%t, %b)
  return (%s)
""")
    constant = graph.create("prim::Constant", types=[FunctionType(callee)], attributes={"name": "g"})
    graph.find_nodes("prim::CallFunction")[0].insert_input(0, graph.block.prepend(constant).output)
    record = GraphFunction("f", graph)
    for delay in range(0, 400, 3):
        left = delay

        def trace(frame: Any, event: str, argument: object) -> Any:
            nonlocal left
            if frame.f_code.co_filename.endswith(os.path.join("runtime", "interpreter.py")):
                frame.f_trace_opcodes = True
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            execute(record, [3])
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
    assert execute(record, [3]) == 1
