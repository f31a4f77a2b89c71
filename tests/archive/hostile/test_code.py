"""Code that runs while an archive is loaded: what it may not do, and how far it gets."""

import time

import pytest
import torch

import rekindle
from rekindle.errors import ArchiveLimitError, UnsafeArchiveError, UnsupportedError
from tests.archive.hostile.programs import attributes, loaded, object_of, program, refusal, setting_state

METHOD = "'__torch__.M.__setstate__'"
DISTRUST = "\nHint: Do not trust this file, unless you know why it does that."
STEPS = (
    "'__setstate__' takes too many steps.\n"
    "Hint: If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(steps=…)."
)
MEMORY = (
    "'__setstate__' takes too much memory.\n"
    "Hint: If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(setstate_bytes=…)."
)
FUNCTION = "def f(n: int) -> int:\n  return n\n"


def test_what_setstate_may_do():
    module = loaded(
        setting_state(
            "n = 0\nfor i in range(state):\n  n = torch.add(n, __torch__.f(i))\n"
            'words = ["a", "b"]\ntorch.append(words, torch.add("c", "d"))\n'
            'table = {"x": torch.mul(torch.ones([2, 2]), 2.)}\n'
            'total = int(torch.sum(torch.matmul(table["x"], table["x"])))\n'
            "self.training = torch.eq(torch.add(torch.add(n, total), torch.len(words)), 45)",
            before=FUNCTION,
        )
    )
    assert module.training


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ('torch.save(state, "/tmp/evil")', "aten::save"),
        ('self.training = bool(torch.from_file("/etc/passwd"))', "aten::from_file"),
        ("print(state)", "archive::Print"),
        ("x = fork(__torch__.f, 1)", "prim::fork"),
        ("torch.manual_seed(0)", "aten::manual_seed"),
        ('ops.evil.system("rm -rf /")', "evil::system"),
        # Python's formatting looks into what it is given: "{0.__class__.__init__.__globals__}"
        ('self.training = torch.eq(torch.len(ops.aten.format("{0.__class__}", state)), 0)', "aten::format"),
        # what is internal to PyTorch trusts its callers with the memory of the process
        ("self.training = bool(torch.sum(torch._softmax(torch.zeros([1]), 0, False)))", "aten::_softmax"),
        # the size of the result depends on the content alone
        ("self.training = bool(torch.sum(torch.bincount(torch.tensor([10000000000]))))", "aten::bincount"),
    ],
)
def test_operators_that_are_refused(code, kind):
    assert refusal(setting_state(code, before=FUNCTION), UnsafeArchiveError) == (
        f"{METHOD} calls '{kind}', which may not run while an archive is loaded.{DISTRUST}"
    )


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n  pass",
        "n = 0\nfor i in range(9223372036854775807):\n  n = i\nself.training = torch.eq(n, 0)",
        "self.training = torch.eq(__torch__.f0(1), 0)",
        'x = "aaaa"\nfor i in range(100):\n  x = torch.add(x, x)\nself.training = torch.eq(torch.len(x), 0)',
        "x = [0]\nfor i in range(100):\n  torch.extend(x, x)\nself.training = torch.eq(torch.len(x), 0)",
        "self.training = bool(torch.sum(torch.expand(torch.zeros([1]), [9000000000000000])))",
        "x = torch.zeros([4000, 4000])\nwhile True:\n  torch.add_(x, torch.matmul(x, x))",
        "x = torch.expand(torch.zeros([1, 1]), [400000, 400000])\nself.training = bool(torch.sum(torch.matmul(x, x)))",
        "self.training = bool(torch.sum(torch.linalg_svdvals(torch.zeros([3000, 3000]))))",
        "self.training = bool(torch.sum(torch.resize_(torch.zeros([1]), [10000000000])))",
    ],
)
def test_what_takes_too_long(code):
    doubling = "".join(
        f"def f{i}(n: int) -> int:\n  return torch.add(__torch__.f{i + 1}(n), __torch__.f{i + 1}(n))\n"
        for i in range(60)
    )
    before = time.process_time()
    archive = setting_state(code, before=f"{doubling}def f60(n: int) -> int:\n  return n\n")
    assert refusal(archive, ArchiveLimitError, steps=50_000, setstate_bytes=1 << 40) == STEPS
    assert time.process_time() - before < 5


@pytest.mark.parametrize(
    "code",
    [
        "self.training = bool(torch.sum(torch.zeros([1000000, 10000])))",
        "x = torch.unsqueeze(torch.zeros([30000]), 0)\nself.training = bool(torch.sum(torch.mul(x, torch.t(x))))",
        "self.training = torch.eq(torch.len(torch.mul([0], 10000000000)), 0)",
        'self.training = torch.eq(torch.len(torch.ljust("a", 10000000000)), 0)',
        'self.training = torch.eq(torch.len(torch.zfill("a", torch.mul(state, 10000000000))), 0)',
        'self.training = torch.eq(torch.len(torch.expandtabs("\\t", torch.mul(state, 10000000000))), 0)',
        'x = torch.ljust("a", 20000)\nself.training = torch.eq(torch.len(torch.replace(x, " ", x)), 0)',
    ],
)
def test_what_takes_too_much_memory(code):
    assert refusal(setting_state(code), ArchiveLimitError, steps=10**15) == MEMORY


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ('ops.prim.RaiseException("no")', "no"),
        ("self.training = torch.eq(torch.div(state, 0), 0.)", "division by zero"),
        ("x = state\nfor i in range(100):\n  x = torch.mul(x, x)\nself.training = torch.eq(x, 0)", "too large"),
        ("self.training = torch.eq(torch.__lshift__(state, 100000000000), 0)", "too large"),
        ("self.training = torch.eq(ops.aten.pow(state, 10000000), 0.)", "too large"),
        ("self.training = torch.eq(torch.factorial(torch.mul(state, 1000000000)), 0)", "too large"),
    ],
)
def test_setstate_that_fails(code, problem):
    problem = "an integer of more than 64 bits" if problem == "too large" else problem
    assert refusal(setting_state(code), UnsafeArchiveError) == f"{METHOD} of the archive failed: {problem}"


def test_recursion():
    call = setting_state("self.again()", methods="  def again(self) -> None:\n    self.again()\n")
    too_deep = "'__setstate__' calls functions more than 100 deep within one another."
    assert refusal(call, ArchiveLimitError) == too_deep
    chain = "".join(f"def f{i}(n: int) -> int:\n  return __torch__.f{i + 1}(n)\n" for i in range(150))
    archive = setting_state(
        "self.training = torch.eq(__torch__.f0(1), 0)", before=f"{chain}def f150(n: int) -> int:\n  return n\n"
    )
    assert refusal(archive, ArchiveLimitError) == too_deep


def test_methods_that_operators_would_call_unseen():
    """``str(x)`` and the sorting of objects are calls of methods from within an operator."""
    evil = '    torch.save(1, "/tmp/evil")\n'
    before = (
        "class D:\n  n : int\n"
        f'  def __str__(self) -> str:\n{evil}    return ""\n'
        f"  def __lt__(self, other: __torch__.D) -> bool:\n{evil}    return False\n"
    )
    new = "__torch__.D.__new__(__torch__.D)"
    sorting = setting_state(
        f"x = [{new}, {new}]\ntorch.sort(x)\nself.training = torch.eq(torch.len(x), 0)", before=before
    )
    assert refusal(sorting, UnsafeArchiveError) == (
        f"{METHOD} calls 'aten::sort', which may not run while an archive is loaded.{DISTRUST}"
    )
    telling = setting_state(f"self.training = torch.eq(torch.len(str({new})), 0)", before=before)
    assert refusal(telling, UnsafeArchiveError) == (
        f"{METHOD} calls 'aten::save', which may not run while an archive is loaded.{DISTRUST}"
    )


@pytest.mark.parametrize("name", ["__del__", "__getattribute__", "__getattr__", "__deepcopy__", "__reduce__"])
def test_methods_that_python_would_call_unseen(name, capsys):
    """A class may have them, and compiled code may call them; Python does not."""
    module = loaded(
        program(
            "  d : __torch__.D\n",
            before=f'class D:\n  n : int\n  def {name}(self) -> int:\n    print("called")\n    return 1\n',
            d=object_of("D", attributes(n=b"K\7")),
        )
    )
    assert module.d.n == 7
    del module
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "computed",
    [
        'Tensor = torch.from_file("/etc/passwd")',
        "int = torch.factorial(1000000000)",
        'str = torch.ljust("a", 10000000000)',
    ],
)
def test_defaults_and_constants_are_not_computed(computed):
    type, _, value = computed.partition(" = ")
    problem = f"'{value}' is not a constant, which must be here"
    archive = program(f"  k : Final[{type}] = {value}\n")
    assert refusal(archive, UnsupportedError).partition("\n")[0] == problem
    module = loaded(program(f"  def g(self, x: {computed}) -> int:\n    return 1\n"))
    with pytest.raises(UnsupportedError) as caught:  # a default is looked at with its method
        str(module.g.graph)
    assert caught.value.message == problem


@pytest.mark.parametrize(
    "expression",
    [
        'torch.ljust("a", 10000000000)',
        'torch.expandtabs("\\t", 10000000000)',
        'torch.center("a", 10000000000, "b")',
        "str(torch.factorial(100000000))",
        "str(torch.__lshift__(1, 10000000000))",
        "str(torch.mul(9223372036854775807, torch.mul(9223372036854775807, 9223372036854775807)))",
    ],
)
def test_the_compiler_does_not_compute_what_is_huge(expression):
    module = loaded(program(f"  def g(self) -> str:\n    return {expression}\n"))
    before = time.process_time()
    assert str(module.g.graph).startswith("graph(")
    assert time.process_time() - before < 1


def test_texts_that_double_in_every_line():
    lines = '    a = "aaaaaaaaaaaaaaaa"\n' + "    a = torch.add(a, a)\n" * 40
    module = loaded(program(f"  def g(self) -> str:\n{lines}    return a\n"))
    assert len(str(module.g.graph)) < 100_000


def test_nothing_runs_where_that_is_refused():
    with pytest.raises(UnsafeArchiveError) as caught:
        rekindle.load(setting_state("pass"), allow_setstate=False)
    assert str(caught.value) == (
        "The archive holds an object that '__torch__.M.__setstate__' would have to make.\n"
        "Hint: Load with allow_setstate=True if you trust this file: it runs in rekindle's interpreter, without access "
        "to files or the system."
    )
    assert torch.equal(rekindle.load(program(), allow_setstate=False)(torch.ones(2)), torch.ones(2))
