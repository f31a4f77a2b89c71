"""The names of the package itself."""

import subprocess
import sys
import typing
from pathlib import Path

import pytest

import rekindle


def test_importing_costs_nothing():
    text = "import rekindle, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


@pytest.mark.parametrize("name", dir(rekindle))
def test_every_name_is_there(name):
    assert getattr(rekindle, name) is not None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_the_version_is_that_of_the_package():
    import tomllib

    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["version"] == rekindle.__version__


def test_where_names_live():
    assert rekindle.Final is typing.Final
    assert rekindle.isinstance is rekindle.isinstance_
    assert issubclass(rekindle.errors.CompileError, rekindle.RekindleError)
    assert "script" in dir(rekindle)


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="module 'rekindle' has no attribute 'trace_everything'"):
        rekindle.trace_everything
    with pytest.raises(AttributeError) as caught:
        rekindle.strict_fusion
    assert str(caught.value) == "module 'rekindle' has no attribute 'strict_fusion'\nHint: it is rekindle.require_fused"


def test_the_command_line_and_dynamo_are_loaded_when_they_are_asked_for():
    text = (
        "import rekindle, sys; rekindle.script; rekindle.install; rekindle.report; rekindle.show;"
        "sys.exit(bool({'click', 'rich', 'torch._dynamo'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
