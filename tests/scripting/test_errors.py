"""What cannot be compiled: the whole text of each error."""

import enum
import functools
import traceback
from typing import Callable, Dict, Final, List, NamedTuple, Tuple

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import (
    CompileError,
    NotScriptableError,
    SchemaError,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from tests.support.messages import message_of


def error_of(error: type[CompileError], obj: object) -> str:
    return message_of(error, lambda: rekindle.script(obj))


# ------------------------------------------------------------------------------------------------ what is not scripted


def test_objects_that_are_nothing_to_compile():
    assert error_of(NotScriptableError, 3) == (
        "a Python object of class 'int' cannot be compiled\nHint: compile a function or a module"
    )
    assert error_of(NotScriptableError, functools.partial(torch.add, 1)) == (
        "a Python object of class 'functools.partial' cannot be compiled\n"
        "Hint: compile a function, written with def, or a module"
    )
    assert error_of(NotScriptableError, [].append).endswith("Hint: compile a function, written with def, or a module")


def test_module_classes():
    assert error_of(NotScriptableError, nn.Linear) == (
        "'Linear' is a module class; modules are compiled, not their classes\nHint: make one first: script(Linear(…))"
    )


def test_parametrized_modules():
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    expected = (
        "the module 'ParametrizedLinear' has parametrizations of 'weight', which only Python can compute\n"
        "Hint: remove them first: torch.nn.utils.parametrize.remove_parametrizations(module, 'weight')"
    )
    assert error_of(NotScriptableError, linear) == expected
    assert error_of(NotScriptableError, nn.Sequential(nn.ReLU(), linear)) == expected
    nn.utils.parametrizations.spectral_norm(linear, "bias")
    assert error_of(NotScriptableError, linear) == expected.replace("of 'weight'", "of 'weight', 'bias'")
    nn.utils.parametrize.remove_parametrizations(linear, "bias")
    nn.utils.parametrize.remove_parametrizations(linear, "weight")
    x = torch.ones(1, 2)
    assert torch.equal(rekindle.script(linear)(x), linear(x))


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


@rekindle.ignore
def ignored(x):
    return x


def test_ignored_functions():
    assert error_of(NotScriptableError, ignored) == (
        "the function 'ignored' is marked to be left to Python\nHint: remove @ignore or @unused to compile it"
    )


def test_lambdas():
    text = error_of(NotScriptableError, eval("lambda x: x"))  # noqa: S307
    assert text == (
        "'tests.scripting.test_errors.<lambda>' is a lambda expression whose source cannot be found.\n"
        "Hint: Write a named function with def."
    )


# ------------------------------------------------------------------------------------------------- names from outside

TENSOR = torch.ones(2)
MODULE = nn.Linear(2, 2)
OBJECT = Plain(1)


def uses_tensor(x):
    return x + TENSOR


def uses_module(x):
    return MODULE.weight + x


def uses_object() -> int:
    return OBJECT + 1


WITH_EMPTY_LIST = (1, [], 2)


def uses_empty_list():
    return WITH_EMPTY_LIST


def test_tuple_with_an_empty_list_is_no_constant():
    assert "'WITH_EMPTY_LIST' is a Python object of class 'tuple'" in error_of(NotScriptableError, uses_empty_list)


def test_python_objects_that_programs_cannot_use():
    assert error_of(NotScriptableError, uses_tensor) == (
        "'TENSOR' is a tensor from outside of the program\n"
        '  File "FILE", line N\n'
        "    def uses_tensor(x):\n"
        "        return x + TENSOR\n"
        "                   ^^^^^^\n"
        "Hint: pass it as an argument, or register it as a parameter or a buffer of a module"
    )
    assert error_of(NotScriptableError, uses_module) == (
        "'MODULE' is a module from outside of the program\n"
        '  File "FILE", line N\n'
        "    def uses_module(x):\n"
        "        return MODULE.weight + x\n"
        "               ^^^^^^^^^^^^^\n"
        "Hint: make it an attribute of the module that calls it"
    )
    assert error_of(NotScriptableError, uses_object) == (
        "'OBJECT' is a Python object of class 'tests.scripting.test_errors.Plain', which a program cannot use\n"
        '  File "FILE", line N\n'
        "    def uses_object() -> int:\n"
        "        return OBJECT + 1\n"
        "               ^^^^^^\n"
        "Hint: pass what it holds as arguments"
    )


LIST = [1]
NESTED = ([[1], [2]], 2)


def appends_to_a_list(n: int) -> int:
    LIST.append(n)
    return len(LIST)


def appends(xs: List[int], n: int):
    xs.append(n)


def appends_by_a_call(n: int):
    appends(NESTED[0][1], n)


class AppendsToAListOfTheClass(nn.Module):
    seen = [1]

    def forward(self, n: int) -> int:
        self.seen.append(n)
        return len(self.seen)


def reads_lists(n: int) -> Tuple[List[int], int, bool, List[List[int]]]:
    mine = list(LIST)
    mine.append(n)
    rows = [[n]]
    rows[0].append(2)
    for inner in NESTED[0]:
        mine += inner
    return mine + LIST, sum(LIST), n in NESTED[0][0], rows


def test_writes_to_lists_from_outside():
    assert error_of(UnsupportedError, appends_to_a_list) == (
        "'LIST' is a list from outside of the program, a constant here, and the function may write to it\n"
        '  File "FILE", line N\n'
        "    def appends_to_a_list(n: int) -> int:\n"
        "        LIST.append(n)\n"
        "        ^^^^\n"
        "Hint: copy it with list(…), pass it as an argument, or assign it in the '__init__' of a module"
    )
    assert "'NESTED' is a list from outside of the program" in error_of(UnsupportedError, appends_by_a_call)
    assert "'self.seen' is a list from outside of the program" in error_of(UnsupportedError, AppendsToAListOfTheClass())
    assert rekindle.script(reads_lists)(1) == ([1, 1, 1, 2, 1], 1, True, [[1, 2]]) == reads_lists(1)


def misspelled(x):
    return torch.sofmax(x, 0)


def test_names_that_modules_lack():
    assert error_of(UndefinedNameError, misspelled) == (
        "the module 'torch' has no attribute 'sofmax'\n"
        '  File "FILE", line N\n'
        "    def misspelled(x):\n"
        "        return torch.sofmax(x, 0)\n"
        "               ^^^^^^^^^^^^\n"
        "Hint: did you mean 'softmax'?"
    )


def innermost(x):
    return x.nothing()


def middle(x):
    return innermost(x) + 1


def outermost(x):
    return middle(x)


def test_the_chain_of_calls():
    assert error_of(UndefinedNameError, outermost) == (
        "a value of type Tensor has no attribute or method 'nothing'\n"
        '  File "FILE", line N\n'
        "    def innermost(x):\n"
        "        return x.nothing()\n"
        "               ^^^^^^^^^\n"
        "'innermost' is compiled because it is used here:\n"
        '  File "FILE", line N\n'
        "    def middle(x):\n"
        "        return innermost(x) + 1\n"
        "               ^^^^^^^^^\n"
        "'middle' is compiled because it is used here:\n"
        '  File "FILE", line N\n'
        "    def outermost(x):\n"
        "        return middle(x)\n"
        "               ^^^^^^"
    )


# -------------------------------------------------------------------------------------------------------- annotations


def takes_set(xs: set):
    return xs


def takes_bare_list(xs: list):
    return xs


def takes_module(m: nn.Linear, x):
    return m(x)


def takes_callable(f: Callable[[int], int]):
    return f(1)


def test_annotations_that_are_not_types():
    assert error_of(UnsupportedError, takes_set) == (
        "'set' needs the types of its elements here\n"
        '  File "FILE", line N\n'
        "    def takes_set(xs: set):\n"
        "                      ^^^\n"
        "Hint: write, for example, set[int]"
    )
    assert error_of(UnsupportedError, takes_bare_list) == (
        "'list' needs the types of its elements here\n"
        '  File "FILE", line N\n'
        "    def takes_bare_list(xs: list):\n"
        "                            ^^^^\n"
        "Hint: write, for example, list[int]"
    )
    assert error_of(NotScriptableError, takes_module) == (
        "the annotation torch.nn.modules.linear.Linear is not a type that a program can use\n"
        '  File "FILE", line N\n'
        "    def takes_module(m: nn.Linear, x):\n"
        "                        ^^^^^^^^^\n"
        "Hint: a module is a part of another module, not an argument; use an attribute of self"
    )
    assert error_of(NotScriptableError, takes_callable) == (
        "the annotation Callable[[int], int] is not a type that a program can use\n"
        '  File "FILE", line N\n'
        "    def takes_callable(f: Callable[[int], int]):\n"
        "                          ^^^^^^^^^^^^^^^^^^^^\n"
        "Hint: call the function by its name, or make it an attribute of the module"
    )


def count_of(items: list[int]) -> int:
    return len(items)


def passes_no_list(n: int) -> int:
    return count_of(n, 2)


def nested(items: list[list[int]]) -> int:
    return len(items)


def passes_tuples(n: int | None) -> int:
    return nested((1, n), (2, 3))


def test_arguments_of_functions_do_not_stand_for_a_list():
    assert error_of(SchemaError, passes_no_list) == (
        "'count_of' cannot be called with (int, int): argument 'items': expected List[int], got int.\n"
        "It is declared as\n"
        "  count_of(int[] items) -> int\n"
        '  File "FILE", line N\n'
        "    def passes_no_list(n: int) -> int:\n"
        "        return count_of(n, 2)\n"
        "               ^^^^^^^^"
    )
    assert error_of(SchemaError, passes_tuples).startswith("'nested' cannot be called with ")


class Based(enum.Enum):
    @classmethod
    def _missing_(cls, value):
        return next(iter(cls))


class WithDefault(Based):
    A = 1


def by_any_value(x: int) -> WithDefault:
    return WithDefault(x)


def test_an_enum_that_inherits_a_default_member():
    assert error_of(UnsupportedError, by_any_value).startswith(
        "a member of the enum 'WithDefault' cannot be found by its value in a program\n"
    )


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Shade(enum.Enum):
    DARK = 1


def uses_mixed() -> Mixed:
    return Mixed.A


def misspells_member() -> Shade:
    return Shade.BRIGHT


def by_value(x: float) -> Shade:
    return Shade(x)


def test_enums():
    assert error_of(NotScriptableError, uses_mixed) == (
        "the enum 'Mixed' cannot be used: its values are of different types (int, str)\n"
        '  File "FILE", line N\n'
        "    def uses_mixed() -> Mixed:\n"
        "                        ^^^^^\n"
        "Hint: give all members values of one type: int, float or str"
    )
    assert error_of(UndefinedNameError, misspells_member) == (
        "the enum 'Shade' has no member 'BRIGHT'\n"
        '  File "FILE", line N\n'
        "    def misspells_member() -> Shade:\n"
        "        return Shade.BRIGHT\n"
        "               ^^^^^^^^^^^^\n"
        "Hint: its members are DARK"
    )
    assert error_of(UnsupportedError, by_value) == (
        "a member of the enum 'Shade' cannot be found by its value in a program\n"
        '  File "FILE", line N\n'
        "    def by_value(x: float) -> Shade:\n"
        "        return Shade(x)\n"
        "               ^^^^^\n"
        "Hint: name it: Shade.DARK"
    )


class Two(NamedTuple):
    a: int
    b: str


def makes_two() -> Two:
    return Two(1)


def test_named_tuples():
    assert error_of(SchemaError, makes_two) == (
        "'Two' cannot be called with (int): argument 'b' is missing.\n"
        "It is declared as\n"
        "  Two(int a, str b) -> __torch__.tests.scripting.test_errors.Two\n"
        '  File "FILE", line N\n'
        "    def makes_two() -> Two:\n"
        "        return Two(1)\n"
        "               ^^^"
    )


# ------------------------------------------------------------------------------------------------------------ modules


class NotInitialized(nn.Module):
    def __init__(self) -> None:
        self.n = 3


def test_module_that_is_not_initialized():
    assert error_of(NotScriptableError, NotInitialized()) == (
        "the module 'NotInitialized' has not been initialized\n"
        "Hint: call super().__init__() at the start of its __init__"
    )


def test_module_without_shapes():
    assert error_of(NotScriptableError, nn.LazyLinear(3)) == (
        "the parameter 'weight' of the module 'LazyLinear' has no shape yet\n"
        "Hint: run the module once before compiling it"
    )


class Holding(nn.Module):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value
        self.unused = object()

    def forward(self, x):
        return x, self.value


HEAD = (
    '  File "FILE", line N\n'
    "        def forward(self, x):\n"
    "            return x, self.value\n"
    "                      ^^^^^^^^^^"
)


def test_attributes_without_a_type():
    assert error_of(NotScriptableError, Holding(object())) == (
        "attribute 'value' of the module 'Holding' cannot be used: "
        f"a value of the Python class 'object' cannot be part of a compiled program\n{HEAD}"
    )
    assert error_of(NotScriptableError, Holding([])) == (
        "attribute 'value' of the module 'Holding' cannot be used: an empty list does not determine the type of its "
        f"elements; declare its type in the class, for example: List[int]\n{HEAD}"
    )
    assert error_of(NotScriptableError, Holding({})) == (
        "attribute 'value' of the module 'Holding' cannot be used: an empty dict does not determine the type of its "
        f"keys; declare its type in the class, for example: Dict[str, int]\n{HEAD}"
    )
    assert error_of(NotScriptableError, Holding([1, "a"])) == (
        "attribute 'value' of the module 'Holding' cannot be used: the elements of the list are of different types "
        f"(int, str); declare its type in the class, for example: List[int]\n{HEAD}"
    )
    assert error_of(NotScriptableError, Holding((1, {2}))) == (
        "attribute 'value' of the module 'Holding' cannot be used: element 1 of the tuple: "
        f"a value of the Python class 'set' cannot be part of a compiled program\n{HEAD}"
    )


def test_values_of_numpy():
    array = pytest.importorskip("numpy").ones(3)
    assert error_of(NotScriptableError, Holding(array)) == (
        "attribute 'value' of the module 'Holding' cannot be used: "
        f"a value of the Python class 'numpy.ndarray' cannot be part of a compiled program; "
        f"make a tensor of it with torch.as_tensor\n{HEAD}"
    )


def reads_a_file(path: str) -> str:
    return open(path).read()


def test_functions_of_python_that_programs_do_not_have():
    assert error_of(UndefinedNameError, reads_a_file) == (
        "the name 'open' is not defined\n"
        '  File "FILE", line N\n'
        "    def reads_a_file(path: str) -> str:\n"
        "        return open(path).read()\n"
        "               ^^^^\n"
        "Hint: compiled programs do not have this function of Python's: call it in a function marked with @ignore"
    )


class WronglyDeclared(nn.Module):
    table: Dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.table = {"a": "b"}

    def forward(self) -> int:
        return self.table["a"]


def test_attribute_that_is_not_as_declared():
    assert error_of(NotScriptableError, WronglyDeclared()) == (
        "attribute 'table' of 'WronglyDeclared' takes Dict[str, int], but got a dict: {'a': 'b'}, "
        "in which ['a'] is a str: 'b' instead of int\n"
        "Hint: correct the declaration of its type"
    )


class Misspelling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.wieght


class Assigning(nn.Module):
    steps: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.steps = 1
        self.part = nn.ReLU()
        self.thing = object()


def test_attributes_that_modules_lack():
    assert error_of(UndefinedNameError, Misspelling()) == (
        "the module 'Misspelling' has no attribute 'wieght'\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            return x * self.wieght\n"
        "                       ^^^^^^^^^^^\n"
        "Hint: did you mean 'weight'?"
    )


class ConstantAssigned(Assigning):
    def forward(self):
        self.steps = 2


class PartAssigned(Assigning):
    def forward(self, x):
        self.part = x


class UnusableAssigned(Assigning):
    def forward(self, x):
        self.thing = x


def test_assignments():
    assert error_of(UnsupportedError, ConstantAssigned()) == (
        "'steps' is a constant of the module 'ConstantAssigned' and cannot be assigned\n"
        '  File "FILE", line N\n'
        "        def forward(self):\n"
        "            self.steps = 2\n"
        "            ^^^^^^^^^^\n"
        "Hint: take 'steps' out of __constants__, or Final out of its annotation"
    )
    assert error_of(UnsupportedError, PartAssigned()) == (
        "'part' is a part of the module 'PartAssigned'; a program cannot replace it\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            self.part = x\n"
        "            ^^^^^^^^^"
    )
    assert error_of(NotScriptableError, UnusableAssigned()) == (
        "attribute 'thing' of the module 'UnusableAssigned' cannot be assigned: "
        "a value of the Python class 'object' cannot be part of a compiled program\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            self.thing = x\n"
        "            ^^^^^^^^^^"
    )


class Called(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x)


def test_parts_without_forward():
    assert error_of(NotScriptableError, Called(nn.ModuleList())) == (
        "the module 'ModuleList' cannot be called: it has no method 'forward'\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            return self.part(x)\n"
        "                   ^^^^^^^^^"
    )


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.ReLU()})
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])


class UnknownKey(Heads):
    def forward(self, x):
        return self.heads["b"](x)


class OutOfRange(Heads):
    def forward(self, x):
        return self.layers[2](x)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


class DifferentParts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), Pair()])

    def forward(self, x, i: int):
        return self.layers[i](x)


class LoopOverPart(Heads):
    def forward(self, x):
        for part in self.heads["a"]:
            x = part(x)
        return x


def test_items_of_containers():
    assert error_of(UndefinedNameError, UnknownKey()) == (
        "the module 'ModuleDict' has no item 'b'\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        '            return self.heads["b"](x)\n'
        "                   ^^^^^^^^^^^^^^^\n"
        "Hint: its items are 'a'"
    )
    assert error_of(TypeMismatchError, OutOfRange()) == (
        "index 2 is out of range for 2 items\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            return self.layers[2](x)\n"
        "                   ^^^^^^^^^^^^^^"
    )
    assert error_of(TypeMismatchError, DifferentParts()) == (
        "the items of the module 'ModuleList' give different types here: Tensor and Tuple[Tensor, Tensor]\n"
        '  File "FILE", line N\n'
        "        def forward(self, x, i: int):\n"
        "            return self.layers[i](x)\n"
        "                   ^^^^^^^^^^^^^^"
    )
    assert error_of(UnsupportedError, LoopOverPart()) == (
        "the module 'ReLU' cannot be iterated over\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        '            for part in self.heads["a"]:\n'
        "                        ^^^^^^^^^^^^^^^\n"
        "Hint: a loop can go over a ModuleList, a Sequential, a ModuleDict or a list of parameters"
    )


class BadFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.function = innermost

    def forward(self, x):
        return self.function(x)


def test_functions_as_attributes_fail_where_they_are_called():
    text = error_of(UndefinedNameError, BadFunction())
    assert text.startswith("a value of type Tensor has no attribute or method 'nothing'\n")
    assert "'innermost' is compiled because it is used here:\n" in text


class Dispatching(nn.Module):
    def forward(self, x, flag: bool):
        return torch.nn.functional.max_pool1d(x, 2, return_indices=flag)


def test_boolean_arguments_must_be_known():
    assert error_of(UnsupportedError, Dispatching()) == (
        "argument 'return_indices' of 'max_pool1d' must be True or False in the source, "
        "or a constant of the module: it decides what the function returns\n"
        '  File "FILE", line N\n'
        "        def forward(self, x, flag: bool):\n"
        "            return torch.nn.functional.max_pool1d(x, 2, return_indices=flag)\n"
        "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "Hint: declare the attribute as Final[bool], or call 'max_pool1d' once for each case"
    )


class Restless(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.inner.register_forward_hook(functools.partial(print))

    def forward(self, x):
        return self.inner(x)


def test_hooks_that_are_not_functions():
    assert error_of(NotScriptableError, Restless()) == (
        "a hook of the module 'Linear' is not a function and cannot be compiled\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            return self.inner(x)\n"
        "                   ^^^^^^^^^^\n"
        "Hint: register a function, or remove the hook before compiling"
    )


class Unmarked(nn.Module):
    def forward(self, x):
        return self.apply(x)


def test_methods_of_nn_module():
    assert error_of(UndefinedNameError, Unmarked()) == (
        "the module 'Unmarked' has no attribute 'apply'\n"
        '  File "FILE", line N\n'
        "        def forward(self, x):\n"
        "            return self.apply(x)\n"
        "                   ^^^^^^^^^^\n"
        "Hint: 'apply' is a method of nn.Module that only Python can call"
    )


def test_failed_compilations_can_be_tried_again():
    class Fragile(nn.Module):
        def forward(self, x):
            return x + OUTSIDE_LATER  # noqa: F821

    module = Fragile()
    assert error_of(UndefinedNameError, module).startswith("the name 'OUTSIDE_LATER' is not defined\n")
    globals()["OUTSIDE_LATER"] = 2
    try:
        assert torch.equal(rekindle.script(module)(torch.ones(1)), torch.full((1,), 3.0))
    finally:
        del globals()["OUTSIDE_LATER"]


def test_tracebacks_spare_the_reader_the_compiler():
    def wrong(x):
        return x.nothing

    with pytest.raises(UndefinedNameError) as caught:
        rekindle.script(wrong)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == [
        "test_tracebacks_spare_the_reader_the_compiler",
        "script",
    ]


class CodedError(Exception):
    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


def raises_with_a_code(n: int) -> int:
    if n < 0:
        raise CodedError("negative", n)
    return n


def test_a_class_that_is_not_made_of_one_text() -> None:
    """It is raised with all that the program gives it."""
    compiled = rekindle.script(raises_with_a_code)
    assert compiled(1) == 1
    with pytest.raises(CodedError) as caught:
        compiled(-1)
    assert (str(caught.value), caught.value.code) == ("negative", -1)
