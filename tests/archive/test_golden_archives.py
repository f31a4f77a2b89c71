"""Archives that nineteen releases of PyTorch wrote, and what each release answered when it ran them.

``golden/make_archives.py`` wrote them, under each release itself. The records are facts about the past: where
PyTorch of today gives another result the record counts, for an archive means what it meant in the release that wrote
it.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections import defaultdict

import pytest
import torch

import rekindle
from tests.archive.golden_archives import GoldenArchive, golden_archives

ARCHIVES = golden_archives()

MODEL_JSON = "torch.jit no longer reads the layout of 1.0 to 1.2"
TRUNCATES = "// of tensors truncated up to 1.12, and torch.jit has it round down"
ANSWERS = "the release refused what the operators of today do"
DTYPES = "torch.tensor of floats gave float64 up to 1.4, and torch.arange of ints gave floats in 1.3"
ROUNDS = "round() went away from zero at halves up to 1.6"
BUFFERS = "archives up to 1.5 do not say which attributes are buffers, and torch.jit takes none to be"
REMOVED = "PyTorch has removed operators that it calls"
ATTRIBUTES = "the state_dict of the release held every attribute that is a Tensor"

TORCH_JIT_DIFFERS: dict[str, str] = {
    **{archive.name: MODEL_JSON for archive in ARCHIVES if archive.name.startswith(("1.0/", "1.1/", "1.2/"))},
    **{f"{release}/division_floor": TRUNCATES for release in ("1.5", "1.6", "1.8", "1.10", "1.12")},
    **{f"{release}/division": ANSWERS for release in ("1.3", "1.4", "1.5", "1.6")},
    **{f"{release}/{name}": ANSWERS for release in ("1.3", "1.4") for name in ("activations", "indexing")},
    "1.6/filling": ANSWERS,
    **{f"{release}/{name}": DTYPES for release in ("1.3", "1.4") for name in ("constants", "conversions")},
    "1.3/spacing_linear": DTYPES,
    **{f"{release}/numbers": ROUNDS for release in ("1.3", "1.4", "1.6")},
    **{f"1.3/{name}": BUFFERS for name in ("perceptron", "quantized_dynamic", "storages")},
    **{f"1.4/{name}": BUFFERS for name in ("convolutions_traced", "quantized_dynamic", "quantized_static")},
    **{f"1.5/{name}": BUFFERS for name in ("convolutions", "perceptron_training", "quantized_dynamic", "storages")},
    **{f"{release}/state_of_own": ATTRIBUTES for release in ("1.4", "1.6", "1.8")},
    **{f"1.6/{name}": REMOVED for name in ("factorizations", "fourier")},
    **({} if torch._C._dispatch_has_kernel("aten::qr") else {"2.13/last_factorizations": REMOVED}),
}
"""Where ``torch.jit.load`` of today's PyTorch does not give what the release gave."""

NOT_TOLD = "nothing in the archive shows that so old a release wrote it"
OVERLOADS = "forward has overloads, which a loaded module lost in the release"
PACKED = "packed weights were Tensors of the state_dict"

GAPS: dict[str, tuple[str, set[str]]] = {
    **{f"{release}/division": (ANSWERS, {"of_int answers"}) for release in ("1.3", "1.4", "1.5")},
    "1.6/division": (ANSWERS, {f"{method} answers" for method in ("forward", "method", "by_int", "of_int")}),
    "1.6/filling": (ANSWERS, {"forward answers"}),
    "1.6/numbers": (f"{ROUNDS}: {NOT_TOLD}", {"rounded differs"}),
    "1.12/division_floor": (f"{TRUNCATES}: {NOT_TOLD}", {"forward differs", "by_int differs"}),
    **{f"{release}/quantized_dynamic": (PACKED, {"state_dict"}) for release in ("1.3", "1.4", "1.5")},
    "1.4/quantized_static": (PACKED, {"state_dict"}),
    **{f"{release}/quantized_lstm": (OVERLOADS, {"forward answers"}) for release in ("1.4", "1.7", "2.1")},
    **{f"{release}/state_of_own": (f"{ATTRIBUTES}: {NOT_TOLD}", {"state_dict"}) for release in ("1.6", "1.8")},
}
"""Where :func:`rekindle.load` does not, why, and in what."""


def test_every_version_of_the_format_is_there() -> None:
    releases = {archive.name.partition("/")[0] for archive in ARCHIVES}
    assert len(releases) >= 19
    assert len(ARCHIVES) >= 250
    found: dict[str, int] = defaultdict(int)
    for archive in ARCHIVES:
        with zipfile.ZipFile(archive.path) as members:
            (name,) = (name for name in members.namelist() if name.endswith("/version"))
            layout = " model.json" if any(name.endswith("/model.json") for name in members.namelist()) else ""
            found[members.read(name).decode().strip() + layout] += 1
    # No operator makes an archive a 6 or a 7.
    assert set(found) == {"1 model.json", "1", "2", "3", "4", "5", "8", "9", "10"}
    written_today = {rekindle.inspect(archive.path).version for archive in ARCHIVES if archive.name.startswith("2.13/")}
    assert written_today == {3, 4, 5, 8, 9, 10}


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_nothing_in_them_is_missing_here(archive: GoldenArchive) -> None:
    summary = rekindle.inspect(archive.path)
    assert not summary.missing_operators
    assert not summary.missing_classes
    assert {call["method"] for call in archive.calls} <= {
        method.name.rpartition("__")[0] or method.name
        for method in summary.methods  # forward__1 is an overload
    }


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_programs_answer_as_in_their_release(archive: GoldenArchive) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor, .* are deprecated", UserWarning)
        warnings.filterwarnings("ignore", "Implicit dimension choice for", UserWarning)
        wrong = archive.check(rekindle.load)
    _, known = GAPS.get(archive.name, ("", set()))
    assert {difference.where for difference in wrong} == known, "\n".join(map(str, wrong))


AGAIN: dict[str, tuple[str, set[str]]] = {
    **{
        f"{release}/state_of_own": ("its state changes whenever it is saved", {"forward differs"})
        for release in ("1.6", "1.8", "1.11", "2.0", "2.13")
    },
    "1.4/state_of_own": ("its state changes whenever it is saved", {"forward differs", "state_dict"}),
}
"""Where what is saved again does not do what the archive does, why, and in what."""


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_torch_jit_reads_what_is_saved_again(archive: GoldenArchive) -> None:
    """Archives converted to the current format mean what they meant: ``torch.jit`` returns the results of the old
    releases."""

    def load_again(path: str) -> torch.jit.ScriptModule:
        loaded: torch.jit.ScriptModule = torch.jit.load(io.BytesIO(rekindle.load(path).save_to_buffer()))
        return loaded

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = archive.check(load_again)
    reason, known = GAPS.get(archive.name, ("", set()))
    if reason == OVERLOADS:
        known = set()  # torch.jit loses them to this day
    _, changed = AGAIN.get(archive.name, ("", set()))
    assert {difference.where for difference in wrong} == known | changed, "\n".join(map(str, wrong))


def test_files_beside_the_programs() -> None:
    archives = [archive for archive in ARCHIVES if archive.extra_files]
    assert len(archives) >= 6
    for archive in archives:
        files: dict[str, object] = dict.fromkeys(archive.extra_files, b"")
        rekindle.load(archive.path, _extra_files=files)
        assert files == {name: text.encode() for name, text in archive.extra_files.items()}


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_torch_jit_is_a_second_witness(archive: GoldenArchive) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = archive.check(torch.jit.load)
    if archive.name in TORCH_JIT_DIFFERS:
        assert wrong, "torch.jit returns what the release returned: remove it from the list"
    else:
        assert not wrong, "\n".join(map(str, wrong))
