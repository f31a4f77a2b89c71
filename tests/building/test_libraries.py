"""What libraries do, called from Python through the functions that C calls."""

import ctypes
import json
import math
import random
import shutil
import threading
from typing import Any, Dict, Final, List, Optional, Tuple

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

import rekindle
from rekindle.building.native_library import Value
from rekindle.building.runtime.c_values import CKind
from tests.building.corpus import same


def library_of(program, folder, examples=(), **options):
    rekindle.build(program, folder, examples, **options)
    return rekindle.NativeLibrary(folder)


# -------------------------------------------------------------------------------------------------------------- values


@rekindle.script
def containers(x: int, items: List[int]) -> Tuple[int, Dict[str, float], List[str], Optional[int]]:
    total = 0
    for each in items:
        if each < 0:
            raise ValueError(f"negative: {each}")
        total += each * x
    found = {"half": total / 2, "one": 1.5}
    found["count"] = float(len(items))
    return total, found, ["x" + str(total), "{}!".format(found["half"])], (None if total > 10 else total)


@pytest.fixture(scope="module")
def of_containers(tmp_path_factory):
    return library_of(containers, tmp_path_factory.mktemp("containers"))


@pytest.mark.parametrize("arguments", [(3, [1, 2, 3]), (1, [1]), (2, []), (-1, list(range(100)))])
def test_values(of_containers, arguments):
    assert of_containers(*arguments) == containers(*arguments)


class Texts(nn.Module):
    form: Final[str]

    def __init__(self) -> None:
        super().__init__()
        self.form = "{} {{}} of {}: {x}"  # in TorchScript {} is a field everywhere, and {x} is none

    def forward(self, n: int, flag: bool, names: List[str], other: Optional[int]) -> List[str]:
        return [self.form.format(names[0], n, flag), str(n) + str(flag), str([n, n]), "{}".format(other)]


class WritesFloats(nn.Module):
    def forward(self, x: float) -> str:
        return "{}".format(x)


@pytest.mark.parametrize("arguments", [(3, True, ["é"], None), (-1, False, ["{}"], 4)])
def test_texts_in_archives_of_torch_jit(tmp_path, arguments):
    torch.jit.script(Texts()).save(tmp_path / "texts.pt")
    program = rekindle.load(tmp_path / "texts.pt")
    assert program(*arguments)[0] == f"{arguments[2][0]} {{{arguments[0]}}} of {arguments[1]}: {{x}}"
    assert library_of(program, tmp_path / "texts", [arguments])(*arguments) == program(*arguments)


def test_floats_in_the_form_of_archives_are_refused(tmp_path):
    torch.jit.script(WritesFloats()).save(tmp_path / "floats.pt")
    with pytest.raises(rekindle.NotBuildable, match="do not write a float as text in the form of archives"):
        rekindle.build(rekindle.load(tmp_path / "floats.pt"), tmp_path / "floats", [(5.0,)])


def test_errors_have_class_text_and_place(of_containers):
    with pytest.raises(ValueError, match=r"^negative: -1\n  at test_libraries.py, line \d+: raise ValueError"):
        of_containers(1, [1, -1])
    with pytest.raises(
        OverflowError, match=r"^the result is an int of more than 64 bits\n  at .*: total \+= each \* x$"
    ):
        of_containers(2**62, [5])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1, "text"), "an argument is of kind 4, which is not that of its type"),
        ((1.5, [1]), "an argument is of kind 2, which is not that of its type"),
        ((1, [1, "text"]), "an argument is of kind 4, which is not that of its type"),
        ((1,), "the method takes another number of arguments than 1"),
        ((1, [1], 2), "the method takes another number of arguments than 3"),
    ],
)
def test_wrong_arguments(of_containers, arguments, error):
    with pytest.raises(rekindle.LibraryError) as raised:
        of_containers(*arguments)
    assert str(raised.value) == error
    assert of_containers(3, [1, 2, 3]) == containers(3, [1, 2, 3])


# ------------------------------------------------------------------------------------------------------------- strings


@rekindle.script
def strings(a: str, b: str, i: int, j: int, step: int) -> Tuple[List[str], List[int], List[bool]]:
    texts = [a + b, a[i:j], a[i:j:step], a[::-1], a * 2, b.join([a, b, a]), a.strip(), a.lstrip("ab"), "%" + a]
    for part in a.split(" "):
        texts.append(part)
    if len(b) > 0:
        texts.append(a.replace(b, "<>"))
    numbers = [len(a), a.find(b), a.rfind(b), a.count(b)] if len(b) > 0 else [len(a)]
    return texts, numbers, [a < b, a == b, b in a, a.startswith(b), a.endswith(b)]


@pytest.fixture(scope="module")
def of_strings(tmp_path_factory):
    return library_of(strings, tmp_path_factory.mktemp("strings"))


TEXTS = st.text(alphabet="ab \u00e4\u20ac\U0001f600", max_size=8)
PLACES = st.integers(-10, 10)


@given(TEXTS, TEXTS, PLACES, PLACES, st.sampled_from([-3, -2, -1, 1, 2, 3]))
@settings(max_examples=200, deadline=None)
def test_strings_are_those_of_python(of_strings, a, b, i, j, step):
    assert of_strings(a, b, i, j, step) == strings(a, b, i, j, step)


@rekindle.script
def float_texts(x: float) -> str:
    return str(x)


@pytest.fixture(scope="module")
def of_floats(tmp_path_factory):
    return library_of(float_texts, tmp_path_factory.mktemp("floats"))


@given(st.floats())
@settings(max_examples=500, deadline=None)
def test_floats_are_written_as_python_writes_them(of_floats, x):
    assert of_floats(x) == str(x)


@pytest.mark.parametrize(
    "x", [0.1, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 5e-324, -0.0, 2.0**53, 9007199254740994.0]
)
def test_hard_floats(of_floats, x):
    assert of_floats(x) == repr(x)


# --------------------------------------------------------------------------------------------------------------- dicts


@rekindle.script
def dict_program(steps: List[Tuple[int, int, int]]) -> Tuple[Dict[int, int], List[int], List[int], int]:
    found: Dict[int, int] = {}
    seen: List[int] = []
    for kind, key, value in steps:
        if kind == 0:
            found[key] = value
        elif kind == 1 and key in found:
            seen.append(found.pop(key))
        elif kind == 2:
            seen.append(found.get(key, -1))
        elif kind == 3 and key in found:
            del found[key]
        elif kind == 4:
            seen.append(found.setdefault(key, value))
    return found, list(found.keys()), list(found.values()), len(seen)


@pytest.fixture(scope="module")
def of_dicts(tmp_path_factory):
    return library_of(dict_program, tmp_path_factory.mktemp("dicts"))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-20, 20), st.integers()), max_size=120))
@settings(max_examples=200, deadline=None)
def test_dicts_are_those_of_python(of_dicts, steps):
    steps = [(kind, key, max(min(value, 2**62), -(2**62))) for kind, key, value in steps]
    found, keys, *rest = of_dicts(steps)
    expected, expected_keys, *expected_rest = dict_program(steps)
    assert (found, list(found), keys, rest) == (expected, list(expected), expected_keys, expected_rest)


# ------------------------------------------------------------------------------------------------------------- numbers


@rekindle.script
def number_program(a: int, b: int, x: float, y: float) -> Tuple[List[int], List[float], List[bool]]:
    whole = [a // b, a % b, a + b, a - b, a * b, a & b, a | b, a ^ b, -a, abs(a), min(a, b), max(a, b)]
    real = [a / b, x + y, x - y, x * y, x / y, x // y, x % y, -x, abs(x), float(a), min(x, y)]
    return whole, real, [a < b, x < y, a < x, x == y, bool(a), bool(x)]


@pytest.fixture(scope="module")
def of_numbers(tmp_path_factory):
    return library_of(number_program, tmp_path_factory.mktemp("numbers"))


SMALL = st.integers(-(2**30), 2**30)
REALS = st.floats(-1e6, 1e6)


@given(SMALL, SMALL, REALS, REALS)
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_python(of_numbers, a, b, x, y):
    try:
        expected = number_program(a, b, x, y)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            of_numbers(a, b, x, y)
    else:
        assert repr(of_numbers(a, b, x, y)) == repr(expected)


@rekindle.script
def math_program(x: float) -> List[float]:
    return [math.exp(x), math.log(x), math.sqrt(x), math.sin(x), x**0.5]


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (-1.0, "math domain error"),
        (0.0, "math domain error"),
        (1e9, "math range error"),
        (math.inf, "math domain error"),
    ],
)
def test_errors_of_functions(tmp_path, x, error):
    library = library_of(math_program, tmp_path)
    assert library(2.5) == math_program(2.5)
    assert all(map(math.isnan, library(math.nan)))
    with pytest.raises((ValueError, OverflowError), match=f"^{error}\n"):
        library(x)


# ------------------------------------------------------------------------------------------------------------- tensors


class Net(nn.Module):
    """Layers, a loop that the input decides, and state."""

    calls: int

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.tied = self.layer.weight
        self.register_buffer("total", torch.zeros(8))
        self.calls = 0
        self.names = ["a", "b"]

    def forward(self, x: Tensor, repeats: List[int], shift: Optional[int] = None) -> Tuple[Tensor, Tensor, int, str]:
        self.calls += 1
        h = torch.relu(self.norm(self.layer(x))) * 2 + 1
        for each in repeats:
            if each > 0:
                h = h.softmax(-1)
        if shift is not None:
            h = h + shift
        self.total += h.sum(0)
        return h, self.total, self.calls, self.names[self.calls % 2]

    @rekindle.export
    def reset(self) -> int:
        self.total.zero_()
        before = self.calls
        self.calls = 0
        return before


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return rekindle.script(Net().eval())


@pytest.fixture(scope="module")
def folder_of_net(net, tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    x = torch.randn(3, 4)
    examples = {"forward": [(x, [1, 0]), (x, [0, 0], 3)], "reset": [()]}
    build = rekindle.build(net, folder, examples, dynamic={"x": [0]}, freestanding=True)
    assert build.is_freestanding
    assert build.methods == ("forward", "reset")
    return folder


def test_a_module_with_state(net, folder_of_net):
    import copy

    library, reference = rekindle.NativeLibrary(folder_of_net), copy.deepcopy(net)
    for rows, repeats, shift in [(3, [1], None), (1, [0, 1, 1], 2), (17, [], None), (2, [1], -1)]:
        x = torch.randn(rows, 4)
        with torch.no_grad():
            expected = reference(x, repeats, shift)
        found = library(x, repeats, shift)
        assert same(found, expected)
    assert library.call("reset") == reference.reset() == 4
    assert library.call("reset") == 0


def test_instances_are_independent(folder_of_net):
    first, second = rekindle.NativeLibrary(folder_of_net), rekindle.NativeLibrary(folder_of_net)
    x = torch.ones(3, 4)
    assert [first(x, [], None)[2] for _ in range(3)] == [1, 2, 3]
    assert second(x, [], None)[2] == 1
    assert not torch.equal(first(x, [], None)[1], second(x, [], None)[1])


def test_strided_arguments(net, folder_of_net):
    library = rekindle.NativeLibrary(folder_of_net)
    x = torch.randn(4, 20).t()[::3]
    torch.testing.assert_close(library(x, [1], None)[0], library(x.contiguous(), [1], None)[0])


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (torch.ones(3, 4, dtype=torch.float64), "argument 0 has another dtype than the library was built for"),
        (torch.ones(4), "argument 0 has another rank than the library was built for"),
        (None, "an argument is of kind 0, which is not that of its type"),
        (3, "an argument is of kind 1, which is not that of its type"),
    ],
)
def test_wrong_tensors(folder_of_net, x, error):
    with pytest.raises(rekindle.LibraryError) as raised:
        rekindle.NativeLibrary(folder_of_net)(x, [1], None)
    assert str(raised.value) == error


def test_sizes_without_a_kernel(folder_of_net):
    library = rekindle.NativeLibrary(folder_of_net)
    with pytest.raises(rekindle.LibraryError) as raised:
        library(torch.ones(3, 5), [1], None)
    first, second = str(raised.value).split("\n")
    assert first == "the library has no kernel for such sizes or dtypes: build it with an example that has them"
    assert second.endswith("h = torch.relu(self.norm(self.layer(x))) * 2 + 1")


def _convolutional(x: Tensor, weight: Tensor) -> Tuple[Tensor, List[Tensor], Tensor]:
    y = torch.conv2d(x, weight, padding=1)
    values, order = torch.sort(y.flatten(1), descending=True)
    parts = torch.meshgrid([values[0, :2], values[0, 2:4]], indexing="ij")
    kept = x.view(-1)
    kept[0] = 5.0
    return torch.einsum("ij,ij->i", values, values), list(parts), order


def test_operators_of_pytorch(tmp_path):
    program = rekindle.script(_convolutional)
    x, weight = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3)
    build = rekindle.build(program, tmp_path, [(x.clone(), weight)])
    assert {"aten::conv2d", "aten::sort", "aten::einsum"} <= set(build.torch_operators)
    assert not build.is_freestanding
    library = rekindle.NativeLibrary(tmp_path)
    given, expected = x.clone(), program(x.clone(), weight)
    torch.testing.assert_close(library(given, weight), expected)
    assert given[0, 0, 0, 0] == 5
    with pytest.raises(rekindle.NotBuildable, match=r"^the program needs PyTorch for .*aten::conv2d"):
        rekindle.build(program, tmp_path, [(x, weight)], freestanding=True)


def test_errors_of_pytorch(tmp_path):
    @rekindle.script
    def product(a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum("ij,jk->ik", a, b)

    library = library_of(product, tmp_path, [(torch.ones(2, 3), torch.ones(3, 2))])
    with pytest.raises(RuntimeError, match=r"(?s)einsum.*\n  at test_libraries.py, line \d+: return torch.einsum"):
        library(torch.ones(2, 3), torch.ones(4, 2))


class Keeps(nn.Module):
    """Keeps its arguments: as an attribute, in a list, as a view."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)
        self.row = torch.zeros(2)
        self.seen: List[Tensor] = []

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tuple[Tensor, Tensor, List[Tensor]]:
        before = self.last, self.row
        self.last = x
        self.row = y[0]
        self.seen.append(z.view(-1))
        return before[0], before[1], self.seen


def test_arguments_that_are_kept(tmp_path):
    examples = [(torch.ones(3), torch.ones(2, 2), torch.ones(2, 1))]
    library = library_of(rekindle.script(Keeps()), tmp_path, examples)
    for number in range(1, 4):
        arguments = [torch.full_like(each, number) for each in examples[0]]
        last, row, seen = library(*arguments)
        for each in arguments:
            each.fill_(-1.0)
        assert same((last, row), (torch.full((3,), number - 1.0), torch.full((2,), number - 1.0)))
        assert same(seen, [torch.full((2,), float(each)) for each in range(1, number + 1)])


class KeepsAndWrites(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        self.last = x
        x += 1
        return self.last


def test_an_argument_that_is_kept_and_written_to(tmp_path):
    library = library_of(rekindle.script(KeepsAndWrites()), tmp_path, [(torch.ones(3),)])
    x = torch.ones(3)
    assert same(library(x), torch.full((3,), 2.0))
    assert same(x, torch.full((3,), 2.0))


# --------------------------------------------------------------------------------------------------------------- files


def test_the_manifest(folder_of_net):
    manifest = json.loads((folder_of_net / "manifest.json").read_text())
    signature = "forward(x: Tensor, repeats: List[int], shift: Optional[int]) -> Tuple[Tensor, Tensor, int, str]"
    assert manifest["methods"] == {
        "forward": {"signature": signature, "parameters": 3, "defaults": [None], "result": None},
        "reset": {"signature": "reset() -> int", "parameters": 0, "defaults": [], "result": None},
    }
    assert manifest["torch"] is None
    assert set(manifest["files"]) == {"libnet.so", "net.h", "net.hpp", "net.weights"}


def test_damaged_weights(net, tmp_path):
    rekindle.build(net, tmp_path, [(torch.ones(2, 4), [1])])
    path = tmp_path / "net.weights"
    whole = path.read_bytes()
    cases = {
        whole[:-64]: rf"the file of weights has {len(whole) - 64} bytes: it is not that of this library, or damaged",
        whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]: "the file of weights is damaged: its checksum differs",
        b"x" + whole[1:]: "the file of weights is not that of this library",
    }
    for content, error in cases.items():
        path.write_bytes(content)
        with pytest.raises(rekindle.LibraryError) as raised:
            rekindle.NativeLibrary(tmp_path)
        assert str(raised.value) == error
    path.unlink()
    with pytest.raises(rekindle.LibraryError, match=r"^the file of weights cannot be opened$"):
        rekindle.NativeLibrary(tmp_path)


def test_damaged_manifests_and_libraries(folder_of_net, tmp_path):
    """Any other byte, and any other content: each is rejected when the library is opened."""
    folder = shutil.copytree(folder_of_net, tmp_path / "net")
    manifest, library = folder / "manifest.json", folder / "libnet.so"
    start = f"'{folder}' holds no library that can be loaded: "
    damaged = f"{start}manifest.json is damaged: its hash differs"

    def error():
        with pytest.raises(rekindle.LibraryError) as raised:
            rekindle.NativeLibrary(folder)
        return str(raised.value)

    whole = manifest.read_bytes()
    generator = random.Random(0)
    places = [place for place in range(len(whole)) if not whole[place : place + 1].isspace()]
    for place in generator.sample(places, 200):
        changed = bytes([whole[place] ^ (1 << generator.randrange(8))])
        manifest.write_bytes(whole[:place] + changed + whole[place + 1 :])
        assert error().startswith(start)
    content = json.loads(whole)
    for other in (
        [],
        "text",
        {},
        {**content, "methods": {}},
        {**content, "methods": None},
        {**content, "sha256": None},
        {key: value for key, value in content.items() if key != "files"},
    ):
        manifest.write_text(json.dumps(other))
        assert error() == damaged
    for text in (b"", whole[:-3], b"\xff" + whole):
        manifest.write_bytes(text)
        assert error().startswith(start)
    manifest.write_bytes(whole)
    code = bytearray(library.read_bytes())
    code[len(code) // 2] ^= 1
    library.unlink()
    library.write_bytes(code)
    assert error() == f"{start}libnet.so is damaged, or is not the library that manifest.json describes"


def test_weights_are_replaced_without_another_build(tmp_path):
    """Two modules of one program have the same library, byte by byte, which takes the weights of either."""
    modules = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh())
        modules.append(layers.eval())
    x = torch.randn(2, 3)
    first, second = (
        rekindle.build(rekindle.script(each), tmp_path / str(number), [(x,)]) for number, each in enumerate(modules)
    )
    assert first.library.read_bytes() == second.library.read_bytes()
    shutil.copy(second.weights, first.weights)
    assert same(rekindle.NativeLibrary(first.folder)(x), modules[1](x).detach())


def test_a_name_with_the_word_for_the_identity(tmp_path):
    files = rekindle.build(float_texts, tmp_path, [(1.0,)], name="IDENTITY_IDENTITY")
    assert files.library.name == "libIDENTITY_IDENTITY.so"
    assert rekindle.NativeLibrary(tmp_path)(0.5) == "0.5"


def test_no_library(tmp_path):
    with pytest.raises(rekindle.LibraryError, match=r"holds no library that can be loaded"):
        rekindle.NativeLibrary(tmp_path)


# ---------------------------------------------------------------------------------------------- misuse of the C API


def test_null_pointers(folder_of_net):
    library = ctypes.CDLL(str(folder_of_net / "libnet.so"))
    library.net_error.restype = ctypes.c_char_p
    argument, result = Value(), Value()
    assert library.net_open(None, None) == 10
    assert library.net_forward(None, ctypes.byref(argument), ctypes.c_int64(1), ctypes.byref(result)) == 10
    assert library.net_error(None) == b"the instance is a null pointer"
    library.net_close(None)
    library.net_free(None)
    instance = ctypes.c_void_p()
    assert library.net_open(None, ctypes.byref(instance)) == 10
    assert library.net_error(instance) == b"the path of the weights is a null pointer"
    library.net_close(instance)
    path = str(folder_of_net / "net.weights").encode()
    assert library.net_open(path, ctypes.byref(instance)) == 0
    assert library.net_forward(instance, None, ctypes.c_int64(3), ctypes.byref(result)) == 10
    assert library.net_forward(instance, ctypes.byref(argument), ctypes.c_int64(1), None) == 10
    assert library.net_error(instance) == b"the arguments or the result are a null pointer"
    tensor = Value(kind=5)
    assert library.net_forward(instance, ctypes.byref(tensor), ctypes.c_int64(1), ctypes.byref(result)) == 10
    assert library.net_error(instance) == b"a tensor is a null pointer"
    library.net_close(instance)


@rekindle.script
def is_int(x: Any) -> bool:
    return isinstance(x, int)


@pytest.mark.parametrize(("kind", "count"), [(CKind.LIST, 1), (CKind.LIST, 3), (CKind.TUPLE, 2)])
def test_a_value_that_contains_itself(kind, count, tmp_path):
    library = library_of(is_int, tmp_path)
    items = (Value * 3)()
    for each in items:
        each.kind, each.payload.address, each.count = kind, ctypes.addressof(items), count
    raw = ctypes.CDLL(str(next(tmp_path.glob("*.so"))))
    raw.net_error.restype = ctypes.c_char_p
    instance, result = ctypes.c_void_p(), Value()
    weights = str(tmp_path / "net.weights").encode()
    assert raw.net_open(weights, ctypes.byref(instance)) == 0
    for _ in range(2):
        assert raw.net_call(instance, ctypes.byref(items), ctypes.c_int64(1), ctypes.byref(result)) == 10
        assert raw.net_error(instance) == b"an argument has containers in containers, more than 1000 deep"
    items[0].kind, items[0].payload.i = CKind.INT, 5
    assert raw.net_call(instance, ctypes.byref(items), ctypes.c_int64(1), ctypes.byref(result)) == 0
    assert (result.kind, result.payload.i) == (CKind.BOOL, 1)
    raw.net_close(instance)
    assert library(3)


@rekindle.script
def count_to(limit: int) -> int:
    steps, number = 0, 1
    while steps < limit:
        number = (number * 1103515245 + 12345) % 2147483648
        steps += 1
    return number


def test_two_threads_at_one_instance(tmp_path):
    """The second call is refused while the first one runs; which of them is first does not matter."""
    library = library_of(count_to, tmp_path)
    expected = library(20_000_000)
    found = []

    def call():
        try:
            found.append(library(20_000_000))
        except rekindle.LibraryError:
            found.append("busy")

    threads = [threading.Thread(target=call) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(found) <= {expected, "busy"}
    assert expected in found
    assert library(20_000_000) == expected


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_cannot_be_built(tmp_path):
    @rekindle.script
    def random_seed(x: float) -> float:
        torch.manual_seed(3)
        return x

    with pytest.raises(
        rekindle.NotBuildable, match=r"^native libraries have no operator 'aten::manual_seed' of these types"
    ) as raised:
        rekindle.build(random_seed, tmp_path)
    assert "torch.manual_seed(3)" in str(raised.value)
    assert not list(tmp_path.iterdir())


WRONG_TYPE = """\
forward() argument 'repeats' (position 2) takes List[int], but got a Tensor of shape (2, 4) and dtype torch.float32
Signature: forward(self, x: Tensor, repeats: List[int], shift: Optional[int] = None) -> \
Tuple[Tensor, Tensor, int, str]"""


def test_wrong_calls_of_build(net, tmp_path):
    x = torch.ones(2, 4)
    cases = [
        ({"name": "no name"}, "the name of a library must be an identifier of C and C++, and 'no name' is not one"),
        ({"name": "bool"}, "the name of a library must be an identifier of C and C++, and 'bool' is not one"),
        ({"examples": {"missing": [()]}}, "the module has no compiled method 'missing'"),
        ({"examples": [x]}, "an example is a tuple of arguments, not a Tensor; examples are a list: [(x,)]"),
        ({"examples": [(x,)]}, "an example of 'forward' lacks the argument 'repeats'"),
        ({"examples": [(x, [1], None, 4)]}, "an example of 'forward' has 5 arguments, which are too many"),
        ({"examples": [(x, x)]}, WRONG_TYPE),
        ({"dynamic": {"y": [0]}}, "no method has a parameter 'y' whose sizes could be dynamic"),
        ({"dynamic": {"x": [2]}}, "'x' has 2 dimensions, and 2 is none of them"),
        ({"dynamic": {"repeats": [0]}}, "'repeats' has dynamic sizes, and in an example it is not a tensor"),
    ]
    for options, error in cases:
        with pytest.raises(rekindle.RekindleError) as raised:
            rekindle.build(net, tmp_path, **{"examples": [(x, [1])], **options})
        assert str(raised.value) == error


@pytest.mark.parametrize("kind", ["function", "Method"])
def test_programs_that_cannot_be_built(kind, net, tmp_path):
    program = {"function": lambda x: x, "Method": net.forward}[kind]
    with pytest.raises(TypeError) as raised:
        rekindle.build(program, tmp_path, [(torch.ones(2),)])
    assert str(raised.value) == (
        f"build takes a compiled module or function, not {kind}; compile it first, with rekindle.script or "
        "rekindle.trace, and give the module for its methods"
    )


# ---------------------------------------------------------------------------------------------------------- formatting


@rekindle.script
def formatted(i: int, x: float, s: str) -> List[str]:
    return [
        f"{i:d}|{i:5}|{i:<5}|{i:^7}|{i:>+7}|{i:05d}|{i:,}|{i:x}|{i:b}|{i: d}|{i:*^9}",
        f"{x:.3f}|{x:8.2f}|{x:e}|{x:g}|{x:+.1f}|{x:<10.1f}|{x:010.3f}|{x:.1%}|{x:,.2f}",
        f"{s}|{s!r}|{s:>8}|{s:^8}|{s:<8}|{s:.2}|{s:*>6.3}",
        "{1}-{0}-{1}".format(i, s),
        "%d %5d %-5d| %05d %+d %s %.2f %8.3e %g %x %%" % (i, i, i, i, i, s, x, x, x, i),
        f"{i:#x}|{i:#X}|{i:#o}|{i:#b}|{i:#012x}|{i:<#12x}|{i:#d}|{i:X}|{i:e}|{i:.1f}",
        f"{x:12}|{x:<12}|{x:+}|{x:08}|{x!r:>12}|{x!s:8}|{i!s:5}|{i!r:^9}|{s:05}|{s!r:.3}",
        f"{i > 0:5}|{i > 0:d}|{i > 0!s:>7}|{i > 0:<5}|{i > 0}",
        "%r|%-8r|%6s|%-6s|%.1s|%c|%3c|%X|%s" % (s, s, s, s, s, "z", 98, i, x),
    ]


@pytest.fixture(scope="module")
def of_formatted(tmp_path_factory):
    return library_of(formatted, tmp_path_factory.mktemp("formatted"))


@given(st.integers(-(2**63), 2**63 - 1), st.floats(), st.text("aé€'\"\\\n", max_size=5))
@settings(max_examples=300, deadline=None)
def test_formatted_text_is_that_of_python(of_formatted, i, x, s):
    assert of_formatted(i, x, s) == formatted(i, x, s)
