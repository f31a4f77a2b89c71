"""Tensors of archives: their storages shared, mapped, moved and byte-swapped, or refused."""

import io
import struct
import warnings
import zipfile
from dataclasses import replace

import pytest
import torch

from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.tensors import TensorLoader
from rekindle.archive.writer import ArchiveWriter
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.errors import ArchiveError, ArchiveLimitError, CorruptArchiveError


class Holder(torch.nn.Module):
    def __init__(self, **tensors):
        super().__init__()
        for name, value in tensors.items():
            setattr(self, name, value)

    def forward(self, x):
        return x


def saved(tensors, **changed):
    """An archive that PyTorch writes, with members replaced."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Holder(**tensors)), buffer)
    writer = ArchiveWriter()
    with zipfile.ZipFile(buffer) as file:
        members = {name.partition("/")[2]: file.read(name) for name in file.namelist()}
    for name, content in {**members, **changed}.items():
        if content is not None:
            writer.add(name, content)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def loaded(archive, map_location=None, limits=DEFAULT_LIMITS):
    reader = ArchiveReader(archive, limits)
    records = read_pickle(reader.view("data.pkl"), "data.pkl").value.state
    loader = TensorLoader(reader, "data", map_location)
    hooks = ("training", "_is_full_backward_hook")
    return {name: loader.tensor(record) for name, record in records.items() if name not in hooks}


BASE = torch.arange(12.0)


DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128),
    *(torch.float8_e5m2, torch.float8_e4m3fn),
)


def quantised(dtype):
    return torch.quantize_per_tensor(torch.rand(3, 4), 0.5, 1, dtype)


def quantised_by_channel():
    return torch.quantize_per_channel(torch.rand(2, 2), torch.tensor([0.5, 0.2]), torch.tensor([0, 1]), 1, torch.quint8)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of tensors in beta state, and of those that will be removed
    TENSORS = {
        "plain": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
        "scalar": torch.tensor(3.5),
        "empty": torch.empty(0, 3),
        "view": BASE[2:8:2],
        "transposed": BASE.view(3, 4).t(),
        "expanded": torch.ones(1).expand(5, 3),
        **{str(dtype).removeprefix("torch."): torch.tensor([0, 1, 2, 3]).to(dtype) for dtype in DTYPES},
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "negative": torch._neg_view(torch.tensor([1.0, 2.0])),
        "sparse": torch.eye(3).to_sparse(),
        "compressed": torch.eye(3).to_sparse_csr(),
        "quantised": quantised(torch.qint8),
        "quantised_view": quantised(torch.quint8).t(),
        "channels": quantised_by_channel(),
    }


def check_equal(found, expected):
    assert (found.dtype, found.layout, found.shape) == (expected.dtype, expected.layout, expected.shape)
    assert found.qscheme() == expected.qscheme() if expected.is_quantized else not found.is_quantized
    if expected.is_quantized:
        assert found.stride() == expected.stride()
        found, expected = found.dequantize(), expected.dequantize()
    if expected.layout is torch.strided:
        assert found.stride() == expected.stride()
        assert (found.is_conj(), found.is_neg()) == (expected.is_conj(), expected.is_neg())
    else:
        found, expected = found.to_dense(), expected.to_dense()
    if expected.dtype.itemsize == 1 or expected.dtype in (torch.uint16, torch.uint32, torch.uint64):
        found, expected = found.float(), expected.float()
    assert torch.equal(found, expected)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", TENSORS)
def test_every_sort_of_tensor(name, mapped, tmp_path):
    archive = saved({"x": TENSORS[name]})
    if mapped:
        (tmp_path / "x.pt").write_bytes(archive)
        archive = tmp_path / "x.pt"
    check_equal(loaded(archive)["x"], TENSORS[name])


def test_views_share_their_storage():
    found = loaded(saved({"a": BASE[2:5], "b": BASE[:4], "c": BASE.view(3, 4)}))
    found["c"][0, 3] = 77
    assert (found["a"][1].item(), found["b"][3].item()) == (77, 77)
    assert BASE[3] == 3


def test_mapped_tensors_are_copied_on_write(tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(saved({"x": torch.ones(1000)}))
    first, second = loaded(path)["x"], loaded(path)["x"]
    first.fill_(7)
    assert second.sum() == 1000
    assert loaded(path)["x"].sum() == 1000


def test_gradients():
    found = loaded(saved({"x": torch.nn.Parameter(torch.ones(2)), "y": torch.ones(2)}))
    assert found["x"].requires_grad
    assert found["x"].is_leaf
    assert not found["y"].requires_grad


@pytest.mark.parametrize("name", ["plain", "int16", "int64", "complex64", "complex128", "bfloat16", "bool"])
def test_big_endian(name):
    tensor = TENSORS[name]
    width = tensor.element_size() // (2 if tensor.is_complex() else 1)
    content = ArchiveReader(saved({"x": tensor})).read("data/0")
    swapped = b"".join(content[i : i + width][::-1] for i in range(0, len(content), width))
    check_equal(loaded(saved({"x": tensor}, **{"data/0": swapped, "byteorder": b"big"}))["x"], tensor)


def test_map_location():
    archive = saved({"x": torch.ones(2), "y": torch.zeros(3)})
    assert loaded(archive, "meta")["x"].device.type == "meta"
    assert loaded(archive, torch.device("meta"))["x"].device.type == "meta"
    assert loaded(archive, {"cpu": "meta"})["x"].device.type == "meta"
    assert loaded(archive, {"cuda:0": "meta"})["x"].device.type == "cpu"
    seen = []

    def choose(storage, location):
        seen.append((storage.nbytes(), location))
        return None

    assert loaded(archive, choose)["x"].tolist() == [1, 1]
    assert seen == [(8, "cpu"), (12, "cpu")]
    doubled = torch.tensor([2.0, 2.0]).untyped_storage()
    assert loaded(archive, lambda storage, location: doubled if storage.nbytes() == 8 else storage)["x"].tolist() == [
        2,
        2,
    ]
    with pytest.raises(TypeError, match="map_location leads to a int, which is neither a device nor a storage"):
        loaded(archive, {"cpu": 3})


def test_devices_that_are_not_there():
    content = ArchiveReader(saved({"x": torch.ones(2)})).read("data.pkl")
    place = content.replace(struct.pack("<I", 3) + b"cpu", struct.pack("<I", 6) + b"vulkan")
    archive = saved({"x": torch.ones(2)}, **{"data.pkl": place})
    with pytest.raises(ArchiveError) as caught:
        loaded(archive)
    assert str(caught.value).startswith("A tensor of the archive is on 'vulkan', where PyTorch cannot put it: ")
    assert str(caught.value).endswith('Hint: Say where tensors are to go: map_location="cpu".')
    assert loaded(archive, "cpu")["x"].tolist() == [1, 1]
    with pytest.raises(ArchiveError) as caught:
        loaded(saved({"x": torch.ones(2)}), "vulkan")
    assert str(caught.value).startswith("A tensor of the archive is to go to 'vulkan', where PyTorch cannot put it")
    assert str(caught.value).endswith("Hint: Give map_location a device that is here.")


def test_tensors_without_content():
    found = loaded(saved({"x": torch.ones(3, device="meta")}))["x"]
    assert (found.device.type, found.shape) == ("meta", (3,))
    with pytest.raises(ArchiveLimitError, match="A tensor without content claims to have 12 bytes; the limit is 8"):
        loaded(saved({"x": torch.ones(3, device="meta")}), limits=replace(DEFAULT_LIMITS, empty_tensor_bytes=8))


def test_storages_that_are_missing_or_short():
    with pytest.raises(CorruptArchiveError) as caught:
        loaded(saved({"x": torch.ones(3)}, **{"data/0": None}))
    assert str(caught.value) == "The archive lacks a member. (in 'data/0')"
    for size in (0, 8, 11, 13, 16):
        with pytest.raises(CorruptArchiveError) as caught:
            loaded(saved({"x": torch.ones(3)}, **{"data/0": bytes(size)}))
        assert str(caught.value) == f"A tensor's storage of 12 bytes has {size} in the archive. (in 'data/0')"


def test_sparse_tensors_whose_indices_lead_outside():
    archive = saved({"x": torch.eye(3).to_sparse()}, **{"data/0": struct.pack("<6q", 0, 1, 2, 0, 1, 9)})
    with pytest.raises(CorruptArchiveError, match="A tensor is broken: PyTorch refuses a sparse tensor: size is incon"):
        loaded(archive)
