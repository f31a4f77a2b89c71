"""The search finds every use of TorchScript's names, however the code spells them, and nothing else."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest
import torch

from rekindle.doctor import names
from rekindle.doctor.names import JIT, Status, classify, is_torchscript
from rekindle.doctor.search import MENTION, search

HERE = Path(__file__).parent


def uses_in(tmp_path: Path, source: str) -> list[tuple[int, str, str]]:
    path = tmp_path / "code.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    found, _ = search(path)
    return [(use.line, use.name, use.form) for use in found.uses]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.jit.script(f)", [(2, "torch.jit.script", "call")]),
        ("import torch.jit as J\nJ.load('x')", [(1, "torch.jit", "import"), (2, "torch.jit.load", "call")]),
        (
            "from torch import jit\n@jit.export\ndef f(): 0",
            [(1, "torch.jit", "import"), (2, "torch.jit.export", "decorator")],
        ),
        (
            "from torch.jit import script as s\n@s\ndef f(): 0",
            [(1, "torch.jit.script", "import"), (2, "torch.jit.script", "decorator")],
        ),
        ("from torch.jit import *\nscript(f)\nother(f)", [(1, "torch.jit", "import"), (2, "torch.jit.script", "call")]),
        (
            "import torch as t\nx = t.jit.script\nx(f)",
            [(2, "torch.jit.script", "reference"), (3, "torch.jit.script", "call")],
        ),
        (
            "import torch\nfrom functools import partial\np = partial(torch.jit.script, optimize=True)\n@p\ndef f(): 0",
            [(3, "torch.jit.script", "reference"), (4, "torch.jit.script", "decorator")],
        ),
        ("import torch\ngetattr(torch, 'jit').script(f)", [(2, "torch.jit.script", "call")]),
        ("import importlib\nimportlib.import_module('torch.jit').script(f)", [(2, "torch.jit.script", "call")]),
        ("import torch\nclass A(torch.jit.ScriptModule): pass", [(2, "torch.jit.ScriptModule", "base class")]),
        ("import torch\ndef f(m: torch.jit.ScriptModule): 0", [(2, "torch.jit.ScriptModule", "annotation")]),
        ("import torch\ndef f(m: 'torch.jit.ScriptModule'): 0", [(2, "torch.jit.ScriptModule", "annotation")]),
        ("import torch\nm: list[torch.jit.ScriptModule] = []", [(2, "torch.jit.ScriptModule", "annotation")]),
        ("import torch\ntorch._C._jit_pass_inline(g)", [(2, "torch._C._jit_pass_inline", "call")]),
        ("from torch import _C\n_C._jit_set_profiling_mode(0)", [(2, "torch._C._jit_set_profiling_mode", "call")]),
        (
            "from torch.utils.mobile_optimizer import optimize_for_mobile as o\no(m)",
            [
                (1, "torch.utils.mobile_optimizer.optimize_for_mobile", "import"),
                (2, "torch.utils.mobile_optimizer.optimize_for_mobile", "call"),
            ],
        ),
        (
            "try:\n    from torch.jit import script\nexcept ImportError:\n    def script(f): return f\nscript(g)",
            [(2, "torch.jit.script", "import"), (5, "torch.jit.script", "call")],
        ),
        (
            "import torch\ndef f(on):\n    c = torch.jit.script if on else id\n    return c(1)",
            [(3, "torch.jit.script", "reference"), (4, "torch.jit.script", "call")],
        ),
        (
            "import torch\nx, y = torch.jit, 1\nx.load('a')",
            [(2, "torch.jit", "reference"), (3, "torch.jit.load", "call")],
        ),
        ("import torch\ndef f(torch): return torch.jit.script", []),
        ("import torch\ndef f():\n    torch = None\n    torch.jit", []),
        ("jit = object()\njit.script(f)", []),
        ("import torch\nx = torch.ones(1)\nx.jit", []),
        ('"""torch.jit.script"""\n# torch.jit.script', []),
    ],
)
def test_uses(tmp_path: Path, source: str, expected: list[tuple[int, str, str]]) -> None:
    assert uses_in(tmp_path, source) == expected


def test_names_are_followed_through_modules_and_star_imports(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for path, text in {
        "__init__.py": "",
        "compat.py": "import torch\nscript = torch.jit.script\n",
        "everything.py": "from .compat import *\nfrom .everything import *\n",
        "inner/__init__.py": "from ..compat import script as jit_script\n",
        "inner/user.py": "import package.everything as e\nfrom . import jit_script as s\ne.script(f)\n@s\ndef g(): 0\n",
    }.items():
        (package / path).write_text(text, encoding="utf-8")
    found, _ = search(package)
    assert [(use.place, use.name, use.form, use.at_import) for use in found.uses] == [
        ("compat.py:2", "torch.jit.script", "reference", True),
        ("inner/__init__.py:1", "torch.jit.script", "import", True),
        ("inner/user.py:2", "torch.jit.script", "import", True),
        ("inner/user.py:3", "torch.jit.script", "call", True),
        ("inner/user.py:4", "torch.jit.script", "decorator", True),
    ]


def test_names_that_lead_back_to_themselves_end(tmp_path: Path) -> None:
    source = "import torch\nx = torch\nwhile True:\n    x = x.a or x.b\n    y = x.c\n    x = y.d\nx.jit"
    assert uses_in(tmp_path, source) == [(7, "torch.jit", "reference")]


def test_where_uses_are_reached(tmp_path: Path) -> None:
    source = """
        import torch
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from torch.jit import ScriptModule
        class Net:
            @torch.jit.export
            def f(self):
                return torch.jit.is_scripting()
        if __name__ == "__main__":
            torch.jit.load("x.pt")
    """
    path = tmp_path / "code.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    found, _ = search(path)
    assert [(use.line, use.scope, use.at_import) for use in found.uses] == [
        (5, "", False),
        (7, "Net", True),
        (9, "Net.f", False),
        (11, "", False),
    ]


def test_what_a_text_search_finds_is_a_use_or_a_mention() -> None:
    found, files = search(HERE / "examples")
    told = {(use.path, line) for use in found.uses for line in range(use.line, use.end_line + 1)}
    told |= {(mention.path, mention.line) for mention in found.mentions}
    lines = {
        (file.relative, number)
        for file in files
        for number, line in enumerate(file.text.split("\n"), 1)
        if MENTION.search(line) or re.search("torch import jit", line)
    }
    assert len(lines) > 20
    assert lines - told == set()
    assert [(each.path, each.line, each.kind) for each in found.mentions] == [
        ("models/__init__.py", 1, "string"),
        ("models/compat.py", 1, "string"),
        ("models/compat.py", 9, "string"),
    ]


def test_files_that_are_no_python(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import torch\nprint 'torch.jit.script'\n", encoding="utf-8")
    (tmp_path / "notes.ipynb").write_text('{"cells": ["torch.jit.load(1)"]}\n', encoding="utf-8")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "copy.py").write_text("import torch.jit\n", encoding="utf-8")
    found, _ = search(tmp_path)
    assert found.uses == []
    assert [(each.path, each.reason) for each in found.unread] == [
        ("old.py", "this interpreter cannot parse it in line 2")
    ]
    assert [(each.path, each.line, each.kind) for each in found.mentions] == [
        ("notes.ipynb", 1, "unread file"),
        ("old.py", 2, "unread file"),
    ]


def test_folders_that_are_searched(tmp_path: Path) -> None:
    """Packages have code in hidden folders and in folders called ``build``; environments and copies are left out."""
    searched = (".mim/flops.py", "kv_cache/net.py", "net/build/__init__.py", "net/dist/__init__.py")
    left_out = (".git/hook.py", ".env/lib/copy.py", "build/lib/net.py", "dist/net.py", ".mypy_cache/net.py")
    for name in (*searched, *left_out):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch.jit\ntorch.jit.load(1)\n", encoding="utf-8")
    (tmp_path / ".env" / "pyvenv.cfg").touch()
    found, _ = search(tmp_path)
    assert [use.path for use in found.uses if use.line == 2] == sorted(searched)


def test_every_public_name_of_torch_jit_is_classified() -> None:
    known = json.loads((HERE.parent / "api" / "torch_jit_names.json").read_text(encoding="utf-8"))
    assert {name for names_of_release in known.values() for name in names_of_release} - JIT.keys() == set()


def test_names_of_the_extension_exist() -> None:
    """In the release that the tests run on; some switches were in older ones."""
    gone = {name for name in names._SWITCHES | names._C_NAMES | names._ON_VIEWS if not hasattr(torch._C, name)}
    assert gone == {"_create_method_from_trace"} | {name for name in gone if "fuse_on_cpu_legacy" in name}


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("torch.jit._script.script", Status.COMPILES),
        ("torch.jit._async.fork", Status.REKINDLE),
        ("torch.jit.ScriptModule.save", Status.REKINDLE),
        ("torch.jit.annotations.BroadcastingList2", Status.SAME),
        ("torch.jit.strict_fusion", Status.SAME),
        ("torch._jit_internal._overload", Status.SAME),
        ("torch._C._jit_set_texpr_fuser_enabled", Status.SWITCH),
        ("torch._C._jit_pass_dce", Status.REKINDLE),
        ("torch.jit.TracedModule", Status.PYTORCH),
        ("torch.utils.bundled_inputs.augment_model_with_bundled_inputs", Status.PYTORCH),
    ],
)
def test_classification(name: str, status: Status) -> None:
    known = classify(name)
    assert known is not None
    assert known[1].status is status


@pytest.mark.parametrize("name", ["torch.jit._recursive.infer_methods_to_compile", "torch._C._jit_pass_fuse"])
def test_internals_are_not_classified(name: str) -> None:
    assert is_torchscript(name)
    assert classify(name) is None
