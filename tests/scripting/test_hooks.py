"""Hooks of modules: compiled where a program calls the part that they belong to, Python's where Python calls it."""

from __future__ import annotations

import copy
import functools
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import CompileError, NotScriptableError, SchemaError, TypeMismatchError
from tests.support.messages import message_of
from tests.support.oracle import compare, script_with_torch


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2

    def forward(self, x: Tensor, n: int = 2) -> Tensor:
        return x * n + self.k


class Whole(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor):
        return self.part(x, 3)


class ByKeyword(Whole):
    def forward(self, x: Tensor):
        return self.part(x, n=3)


class ByDefault(Whole):
    def forward(self, x: Tensor):
        return self.part(x)


def part(*, before: Tuple[Any, ...] = (), after: Tuple[Any, ...] = ()) -> Part:
    made = Part()
    for hook in before:
        made.register_forward_pre_hook(hook)
    for hook in after:
        made.register_forward_hook(hook)
    return made


def before(self: Any, input: Tuple[Tensor, int]) -> Tuple[Tensor, int]:
    return input[0] + 1, input[1] + self.k


def before_without_result(self: Any, input: Tuple[Tensor, int]) -> None:
    print("before", input[1])  # noqa: T201


def before_that_may_change(self: Any, input: Tuple[Tensor, int]) -> Optional[Tuple[Tensor, int]]:
    if bool(input[0].sum() > 2):
        return input[0] * 2, input[1]
    return None


def before_one(self: Any, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] + 1,)


def before_one_alone(self: Any, input: Tuple[Tensor]) -> Tensor:
    return input[0] + 1


def after(self: Any, input: Tuple[Tensor, int], output: Tensor) -> Tensor:
    return output * 10 + input[1]


def after_without_result(self: Any, input: Tuple[Tensor, int], output: Tensor) -> None:
    print("after", input[1])  # noqa: T201


def after_that_may_change(self: Any, input: Tuple[Tensor, int], output: Tensor) -> Optional[Tensor]:
    return output * 3 if bool(output.sum() > 12) else None


def after_of_another_type(self: Any, input: Tuple[Tensor, int], output: Tensor) -> Tuple[Tensor, int]:
    return output, input[1]


def after_one(self: Any, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output * 10 + input[0]


MODULES = {
    "before": lambda: Whole(part(before=(before,))),
    "several before": lambda: Whole(part(before=(before, before_without_result, before))),
    "before, maybe": lambda: Whole(part(before=(before_that_may_change, before))),
    "after": lambda: Whole(part(after=(after, after_without_result, after))),
    "after, maybe": lambda: Whole(part(after=(after_that_may_change,))),
    "after, another type": lambda: Whole(part(after=(after_of_another_type,))),
    "both": lambda: Whole(part(before=(before,), after=(after,))),
    "by keyword": lambda: ByKeyword(part(before=(before_one,), after=(after_one,))),
    "by default": lambda: ByDefault(part(before=(before_one_alone,), after=(after_one,))),
    "in a container": lambda: Whole(nn.ModuleList([part(before=(before,), after=(after,))])[0]),
}
COMPILED_ALIKE = ["before", "several before", "after", "after, another type", "both"]


@pytest.mark.parametrize("name", MODULES)
def test_results_are_those_of_eager(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = MODULES[name]()
    compiled = rekindle.script(module)
    for x in (torch.ones(1), torch.full((3,), 4.0)):
        for _ in range(3):
            expected, printed = module(x), capsys.readouterr().out
            torch.testing.assert_close(compiled(x), expected, rtol=0, atol=0)
            assert capsys.readouterr().out == printed


@pytest.mark.parametrize("name", COMPILED_ALIKE)
def test_graphs_are_those_of_torch_jit(name: str) -> None:
    comparison = compare(MODULES[name](), rekindle.script)
    assert comparison.equal, comparison.differences


@pytest.mark.parametrize("name", MODULES)
def test_hooks_of_the_whole_are_pythons(name: str) -> None:
    """Python calls the whole, and its hooks; they need no annotations, and see what they see of any module."""
    seen: List[Any] = []

    def note(module, args, kwargs, output):
        seen.append((args, kwargs))
        return output, "noted"

    module = MODULES[name]()
    module.register_forward_hook(note, with_kwargs=True)
    x = torch.ones(1)
    result, mark = rekindle.script(module)(x=x)
    torch.testing.assert_close(result, module(x)[0], rtol=0, atol=0)
    assert mark == "noted"
    assert seen[0] == ((), {"x": x})


LATE = """\
the part 'part' of the compiled module has a hook that was registered after compiling, which compiled code does not run
Hint: register it before the module is compiled, or remove it: handle.remove()"""


def test_a_hook_registered_later_runs_where_python_calls_the_part() -> None:
    """Where compiled code would call the part it cannot run, and the call is refused. torch.jit refuses to register
    it."""
    compiled, x = rekindle.script(Whole(Part())), torch.ones(1)
    handle = compiled.part.register_forward_hook(lambda module, args, output: output * 100)
    assert torch.equal(compiled.part(x, 3), torch.full((1,), 500.0))
    copied = copy.deepcopy(compiled)
    for use in (compiled, compiled.forward, compiled.forward.launch, copied):
        with pytest.raises(RuntimeError) as caught:
            use(x)
        assert str(caught.value) == LATE
    handle.remove()
    assert torch.equal(compiled(x), torch.full((1,), 5.0))
    assert torch.equal(rekindle.script(Whole(Part()))(x), torch.full((1,), 5.0))
    theirs = script_with_torch(Whole(Part()))
    with pytest.raises(RuntimeError, match="register_forward_hook is not supported on ScriptModules"):
        theirs.part.register_forward_hook(lambda module, args, output: output * 100)


@pytest.mark.parametrize(
    ("register", "hook"),
    [
        ("register_forward_pre_hook", lambda module, args: None),
        ("register_full_backward_hook", lambda module, inputs, outputs: None),
        ("register_full_backward_pre_hook", lambda module, outputs: None),
    ],
)
def test_hooks_of_every_kind_that_are_registered_later(register: str, hook: Any) -> None:
    compiled, x = rekindle.script(Whole(Part())), torch.ones(1)
    handle = getattr(compiled.part, register)(hook)
    with pytest.raises(RuntimeError) as caught:
        compiled(x)
    assert str(caught.value) == LATE
    handle.remove()
    getattr(compiled, register)(hook)  # Python calls the whole itself
    assert torch.equal(compiled(x), torch.full((1,), 5.0))


def test_hooks_on_parts_of_different_types() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = part(after=(after,))
            self.b = part(before=(before,), after=(after,))

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x, 1) + self.b(x, 2)

    module, x = Both(), torch.ones(2)
    assert torch.equal(rekindle.script(module)(x), module(x))


# -------------------------------------------------------------------------------------------------------------- errors


def too_few(self: Any) -> None:
    pass


def too_many(self: Any, input: Tuple[Tensor, int], more: int) -> None:
    pass


def no_tuple(self: Any, input: Tensor) -> None:
    pass


def not_annotated(self, input):
    return input


def other_elements(self: Any, input: Tuple[Tensor, Tensor]) -> None:
    pass


def other_result(self: Any, input: Tuple[Tensor, int]) -> Tuple[int, int]:
    return 1, 2


def short_result(self: Any, input: Tuple[Tensor, int]) -> Tuple[Tensor]:
    return (input[0],)


def maybe_other(self: Any, input: Tuple[Tensor, int]) -> Optional[Tuple[Tensor]]:
    return (input[0],)


def after_too_few(self: Any, input: Tuple[Tensor, int]) -> None:
    pass


def after_other_output(self: Any, input: Tuple[Tensor, int], output: int) -> None:
    pass


def after_maybe_int(self: Any, input: Tuple[Tensor, int], output: Tensor) -> Optional[int]:
    return 3


PLACE = '\n  File "FILE", line N\n        def forward(self, x: Tensor):\n            return self.part(x, 3)\n'
CALL = PLACE + "                   ^^^^^^^^^\n"
PRE_HINT = "Hint: declare it as def {}(self, input: Tuple[Tensor, int]), or remove it before compiling"
HINT = "Hint: declare it as def {}(self, input: Tuple[Tensor, int], output: Tensor), or remove it before compiling"
WRONG = {
    too_few: (
        "the pre-hook 'too_few' of the module 'Part' takes 0 arguments besides the module, but is called with 1 "
        "argument" + CALL + PRE_HINT.format("too_few")
    ),
    too_many: (
        "the pre-hook 'too_many' of the module 'Part' takes 2 arguments besides the module, but is called with 1 "
        "argument" + CALL + PRE_HINT.format("too_many")
    ),
    no_tuple: (
        "parameter 'input' of the pre-hook 'no_tuple' of the module 'Part' is Tensor, but gets the arguments of the "
        "call, Tuple[Tensor, int]" + CALL + PRE_HINT.format("no_tuple")
    ),
    not_annotated: (
        "parameter 'input' of the pre-hook 'not_annotated' of the module 'Part' is Tensor (it was assumed to be a "
        "Tensor because it has no annotation), but gets the arguments of the call, Tuple[Tensor, int]"
        + CALL
        + PRE_HINT.format("not_annotated")
    ),
    other_elements: (
        "parameter 'input' of the pre-hook 'other_elements' of the module 'Part' is Tuple[Tensor, Tensor], but gets "
        "the arguments of the call, Tuple[Tensor, int]" + CALL + PRE_HINT.format("other_elements")
    ),
    maybe_other: (
        "a hook of the module 'Part' returns Optional[Tuple[Tensor]]: where it is None, Tuple[Tensor, int] stays, and "
        "a program needs one type for both" + CALL.rstrip("\n")
    ),
}
WRONG_BEHIND = {
    after_too_few: (
        "the hook 'after_too_few' of the module 'Part' takes 1 argument besides the module, but is called with 2 "
        "arguments" + CALL + HINT.format("after_too_few")
    ),
    after_other_output: (
        "parameter 'output' of the hook 'after_other_output' of the module 'Part' is int, but gets the result, Tensor"
        + CALL
        + HINT.format("after_other_output")
    ),
    after_maybe_int: (
        "a hook of the module 'Part' returns Optional[int]: where it is None, Tensor stays, and a program needs "
        "one type for both" + CALL.rstrip("\n")
    ),
}


@pytest.mark.parametrize("hook", WRONG)
def test_pre_hooks_that_do_not_fit(hook: Any) -> None:
    assert message_of(TypeMismatchError, lambda: rekindle.script(Whole(part(before=(hook,))))) == WRONG[hook]


@pytest.mark.parametrize("hook", WRONG_BEHIND)
def test_hooks_that_do_not_fit(hook: Any) -> None:
    assert message_of(TypeMismatchError, lambda: rekindle.script(Whole(part(after=(hook,))))) == WRONG_BEHIND[hook]


def test_what_a_pre_hook_returns_must_fit_forward() -> None:
    with pytest.raises(SchemaError) as caught:
        rekindle.script(Whole(part(before=(other_result,))))
    first, second, *_ = caught.value.message.split("\n")
    assert first == "what the pre-hook 'other_result' of the module 'Part' returns does not fit:"
    assert second.endswith("argument 'x': expected Tensor, got int.")


def test_a_hook_sees_what_the_pre_hook_before_it_returned() -> None:
    """Python ignores its wrong annotation; compilation reports it."""
    with pytest.raises(TypeMismatchError, match=r"gets the arguments of the call, Tuple\[Tensor\]"):
        rekindle.script(Whole(part(before=(short_result,), after=(after,))))


def with_keywords(self: Any, args: Tuple[Tensor], kwargs: Dict[str, int], output: Tensor) -> Tensor:
    return output


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (
            lambda made: made.register_forward_hook(with_keywords, with_kwargs=True),
            "a hook of the module 'Part' takes keyword arguments (with_kwargs=True) and cannot be compiled"
            + CALL
            + "Hint: register it without with_kwargs, or remove it before compiling",
        ),
        (
            lambda made: made.register_forward_hook(functools.partial(after)),
            "a hook of the module 'Part' is not a function and cannot be compiled"
            + CALL
            + "Hint: register a function, or remove the hook before compiling",
        ),
    ],
)
def test_hooks_that_cannot_be_compiled(register: Any, message: str) -> None:
    made = Part()
    register(made)
    assert message_of(NotScriptableError, lambda: rekindle.script(Whole(made))) == message


def test_torch_jit_refuses_these_as_well() -> None:
    for hook in (too_few, too_many, no_tuple, not_annotated, other_elements, other_result, short_result, maybe_other):
        with pytest.raises(RuntimeError):
            script_with_torch(Whole(part(before=(hook,))))
    assert issubclass(CompileError, RuntimeError)


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
@pytest.mark.parametrize("place", ["0", ""])
def test_backward_hooks_that_compiled_code_would_not_run(register: str, place: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    handle = getattr(model.get_submodule(place), register)(lambda *given: None)
    name = "Linear" if place else "Sequential"
    assert message_of(NotScriptableError, lambda: rekindle.script(model)) == (
        f"the module '{name}' has backward hooks, which compiled code would not run\n"
        "Hint: remove them before compiling; those of the whole module may be registered on the compiled one"
    )
    handle.remove()
    seen: list[str] = []
    compiled = rekindle.script(model)
    compiled.register_full_backward_hook(lambda *given: seen.append("whole"))
    compiled(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == ["whole"]


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


@pytest.mark.filterwarnings("ignore:Dynamo:UserWarning")  # it does not trace compiled code, and says so
def test_torch_compile_takes_modules_while_another_one_has_a_late_hook():
    """Dynamo calls a module where code calls a weak reference to it: the list of modules with late hooks has none."""
    hooked, other = rekindle.script(Dense()), rekindle.script(Dense())
    handle = hooked.register_forward_hook(lambda module, args, result: result * 2)
    x = torch.randn(2, 4)
    expected = other(x)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(other, backend="eager")(x), expected)
    handle.remove()
