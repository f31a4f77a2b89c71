"""The machine that reads pickles: it makes values and records, and refuses everything else."""

import io
import os
import pickle
import struct
import zipfile
from dataclasses import replace

import pytest
import torch

from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.records import PickledEnum, PickledObject, PickledTyped, SparseRecord, TensorRecord
from rekindle.errors import ArchiveError, ArchiveLimitError, CorruptArchiveError, UnsafeArchiveError


def saved(**attributes):
    """The pickle that PyTorch writes for a module with these attributes."""

    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in attributes.items():
                setattr(self, name, value)

        def forward(self, x):
            return x

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Holder()), buffer)
    with zipfile.ZipFile(buffer) as file:
        return file.read("archive/data.pkl")


def state(**attributes):
    found = read_pickle(saved(**attributes), "data.pkl").value
    assert isinstance(found, PickledObject)
    return found.state


def refusal(data, error=CorruptArchiveError, **limits):
    with pytest.raises(error) as caught:
        read_pickle(data, "data.pkl", replace(DEFAULT_LIMITS, **limits))
    assert type(caught.value) is error
    return str(caught.value)


def broken(data):
    found = refusal(data)
    assert found.startswith("The pickle is broken at byte ")
    return found.partition(": ")[2]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, 255, 256, 65536, -1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2.5, float("-inf")),
        *("", "text", "täxt" * 100, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], [[1, 2], ["x"]]),
        *({}, {"a": 1}, {1: [2], 2.5: None}, (1, [2, {"three": (4, 5)}])),
    ],
)
def test_plain_values(value, protocol):
    read = read_pickle(pickle.dumps(value, protocol), "x").value
    assert read == value
    assert type(read) is type(value)


def test_what_is_one_object_stays_one():
    inner = [1, 2]
    first, second = read_pickle(pickle.dumps([inner, inner], 2), "x").value
    assert first is second


def test_what_pytorch_writes():
    found = state(a=[1, 2], b={"x": [1.5]}, c=(1, "two", None), d=2j, e=torch.device("cpu"), f=[True], g="ä")
    assert (found["a"].value, found["a"].type) == ([1, 2], "List[int]")
    assert found["b"].type == "Dict[str, List[float]]"
    assert isinstance(found["b"].value["x"], PickledTyped)
    assert found["c"] == (1, "two", None)
    assert found["d"] == 2j
    assert found["e"] == torch.device("cpu")
    assert found["f"].type == "List[bool]"
    assert found["g"] == "ä"
    assert found["training"] is True


def test_tensors():
    base = torch.arange(10.0)
    found = state(a=base[2:8:2], b=base.view(2, 5).t(), c=torch.nn.Parameter(torch.ones(2)))
    a, b, c = found["a"], found["b"], found["c"]
    assert isinstance(a, TensorRecord)
    assert a.storage is b.storage
    assert (a.offset, a.sizes, a.strides, a.dtype) == (2, (3,), (2,), torch.float32)
    assert (b.sizes, b.strides) == ((5, 2), (1, 5))
    assert (a.storage.count, a.storage.location) == (10, "cpu")
    assert (a.requires_grad, c.requires_grad) == (False, True)
    assert isinstance(state(s=torch.eye(3).to_sparse())["s"], SparseRecord)
    assert state(q=torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.qint8))["q"].quantizer.scale == 0.5
    assert state(z=torch.tensor([1j]).conj())["z"].bits == ("conj",)


def test_enums_and_classes_by_name():
    found = read_pickle(b"\x80\x02c__torch__.a\nColor\nK\x03R.", "x")
    assert isinstance(found.value, PickledEnum)
    assert (found.value.name, found.value.value) == ("__torch__.a.Color", 3)
    assert found.classes == ["__torch__.a.Color"]


# ---------------------------------------------------------------------------------------------- what is refused


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((os.system, "touch /tmp/evil"), f"{os.name}.system"),
        ((eval, "1"), None),
        ((getattr, "x", "upper"), None),
        ((torch.load, "x"), "torch.serialization.load"),
        ((torch.hub.load, "x", "y"), "torch.hub.load"),
    ],
)
def test_names_outside_the_list(call, name, protocol):
    message = refusal(pickle.dumps(Evil(*call), protocol), UnsafeArchiveError)
    assert message.startswith("The pickle mentions '")
    assert message.endswith(
        "which no program needs. Loading imports and calls nothing that a file names. (in 'data.pkl')\n"
        "Hint: Do not trust this file, unless you know why it mentions that."
    )
    if name is not None:
        assert f"'{name}'" in message


@pytest.mark.parametrize(
    "name",
    [
        "torch\ndevice.__class__",
        "torch._utils\n_import_dotted_name",
        "__torch__.a\nb c",
        "__torch__x\nb",
        "\n",
        "torch\nload",
    ],
)
def test_names_that_nearly_are(name):
    refusal(b"\x80\x02c" + name.encode() + b"\n.", UnsafeArchiveError)


def test_only_the_listed_functions_are_called():
    device = b"\x80\x02ctorch\ndevice\n\x8c\x03cpu\x85R"
    assert read_pickle(device + b".", "x").value == torch.device("cpu")
    assert "a call of what cannot be called" in broken(device + b")R.")  # a torch.device can be called in Python
    assert "a call of what cannot be called" in broken(b"\x80\x02ctorch\nfloat32\n)R.")
    assert "a call with too many arguments, or too few" in broken(b"\x80\x02ctorch\ndevice\n)R.")
    assert "the unknown device 'moon'" in broken(b"\x80\x02ctorch\ndevice\n\x8c\x04moon\x85R.")


def test_instructions_that_archives_do_not_have():
    for code in b"ioPISVLFdgp2\x82\x83\x84\x92\x96\x97\x98\x8f\x90\x91BC\x8e":
        assert "which archives do not have" in broken(b"\x80\x02N" + bytes([code]) + b"1\n.")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x80\x01N.", "a protocol that archives do not have"),
        (b"\x80\x02.", "it leaves more than one value"),
        (b"\x80\x02NN.", "it leaves more than one value"),
        (b"\x80\x02(N.", "it leaves more than one value"),
        (b"\x80\x02N.N", "something follows its end"),
        (b"\x80\x02e.", "a mark is missing"),
        (b"\x80\x02N(\x85.", "a value is missing"),
        (b"\x80\x02N(q\x00.", "a value is missing"),
        (b"\x80\x02h\x07.", "the object 7 is not there"),
        (b"\x80\x02](a.", "a value is missing"),
        (b"\x80\x02N(Ne.", "items are added to a value other than a list"),
        (b"\x80\x02}(Nu.", "items are added to a value other than a dict"),
        (b"\x80\x02}(]Nu.", "a key of a dict that cannot be one"),
        (b"\x80\x02})Ns.", "a key of a dict that cannot be one"),
        (b"\x80\x02X\xff\xff\xff\xff.", "it is cut off"),
        (b"\x80\x02\x8d" + b"\xff" * 8 + b".", "it is cut off"),
        (b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".", "an integer of more than 64 bits"),
        (b"\x80\x02]}b.", "a state for what takes none"),
        (b"\x80\x02c__torch__\nA\n)\x81}b}b.", "two states for one object"),
        (b"\x80\x02c__torch__\nA\nN\x81.", "an object with arguments"),
        (b"\x80\x02])\x81.", "an object of no class"),
        (b"\x80\x02c__torch__\nA\n]R.", "a member of an enum that has no value"),
        (b"\x80\x02NQ.", "a persistent id that is not a storage"),
    ],
)
def test_broken(data, problem):
    assert broken(data) == f"{problem}. (in 'data.pkl')"


def test_text_that_is_none():
    assert refusal(b"\x80\x02X\x01\x00\x00\x00\xff.") == (
        "The pickle has a text that is none at byte 8. (in 'data.pkl')"
    )


def text(word):
    return b"\x8c" + bytes([len(word)]) + word.encode()


def number(value):
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(count=4, kind="Float", key="0", place="cpu"):
    facts = text("storage") + f"ctorch\n{kind}Storage\n".encode() + text(key) + text(place) + number(count)
    return b"(" + facts + b"tQ"


STORAGE = storage()


def tensor(offset=0, sizes=(4,), strides=(1,), storage=STORAGE, function="_rebuild_tensor_v2", rest=b"\x89)"):
    call = f"\x63torch._utils\n{function}\n(".encode()
    return b"\x80\x02" + call + storage + number(offset) + numbers(sizes) + numbers(strides) + rest + b"tR."


LARGE = 2**62


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (dict(offset=-1), "a tensor of negative offset"),
        (dict(offset=1), "a tensor that reaches beyond its storage"),
        (dict(offset=2**64), "a tensor of negative offset"),
        (dict(sizes=(5,)), "a tensor that reaches beyond its storage"),
        (dict(sizes=(-1,)), "a tensor whose sizes are negative or none"),
        (dict(strides=(-1,)), "a tensor whose strides are negative or none"),
        (dict(strides=(2,)), "a tensor that reaches beyond its storage"),
        (dict(strides=(LARGE * 4,)), "a tensor whose strides are negative or none"),
        (dict(sizes=(4, 1)), "a tensor with more sizes than strides, or fewer"),
        (dict(sizes=(LARGE, LARGE), strides=(0, 0)), "a tensor larger than memory can be"),
        (dict(sizes=(0,), offset=5), "a tensor that begins beyond its storage"),
        (dict(sizes=(1,) * 65, strides=(1,) * 65), "a tensor of more than 64 dimensions"),
        (dict(storage=b"N"), "a tensor without a storage"),
        (dict(storage=storage(-1)), "a storage of negative size"),
        (dict(storage=storage(LARGE * 2)), "a storage larger than memory can be"),
        (dict(rest=b"K\x01)"), "a tensor that neither takes gradients nor does not"),
        (dict(rest=b"\x89(K\x01t"), "a tensor with hooks"),
        (dict(function="_rebuild_qtensor", rest=b")\x89)"), "an unknown quantisation"),
    ],
)
def test_tensors_that_do_not_fit_their_storage(view, problem):
    assert isinstance(read_pickle(tensor(), "x").value, TensorRecord)
    assert broken(tensor(**view)) == f"{problem}. (in 'data.pkl')"


def test_storages_that_differ():
    both = b"\x80\x02" + storage(4) + storage(5) + b"\x86."
    assert broken(both) == "two storages of the name '0' that differ. (in 'data.pkl')"
    same_bytes = b"\x80\x02" + storage(4) + storage(2, "Double") + b"\x86."
    first, second = read_pickle(same_bytes, "x").value
    assert (first.dtype, second.dtype) == (torch.float32, torch.float64)


def test_limits():
    data = pickle.dumps([list(range(i)) for i in range(50)], 2)
    assert refusal(data, ArchiveLimitError, pickle_opcodes=100) == (
        "The pickle has more than 100 instructions. (in 'data.pkl')\n"
        "Hint: If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(pickle_opcodes=…)."
    )
    assert "more than 10 remembered objects" in refusal(data, ArchiveLimitError, pickle_memo=10)
    assert "the limit is 10" in refusal(data, ArchiveLimitError, pickle_bytes=10)


def test_cut_off_anywhere():
    data = saved(a=torch.ones(2), b={"x": [1, 2]}, c=(1, 2.5, "text"), d=torch.eye(2).to_sparse())
    for length in range(len(data)):
        refusal(data[:length])


def test_every_byte_changed():
    """Whatever byte is changed, the answer is a value or a typed error."""
    data = saved(a=torch.ones(2), b={"x": [1, 2]}, c=(1, 2.5, "text"))
    outcomes = set()
    for at in range(len(data)):
        for new in (0, data[at] ^ 1, data[at] ^ 0x80, ord("R"), ord("("), ord("0")):
            try:
                read_pickle(data[:at] + struct.pack("B", new) + data[at + 1 :], "x")
            except ArchiveError as error:
                outcomes.add(type(error))
            else:
                outcomes.add(None)
    assert outcomes == {None, CorruptArchiveError, UnsafeArchiveError}
