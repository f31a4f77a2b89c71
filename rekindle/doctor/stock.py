"""Results of stock PyTorch: a script that the user runs records them, and they are compared with rekindle's.

The package never calls ``torch.jit``; the script does, in a process that the user starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from rekindle.doctor.comparison import copied, difference

INPUTS: Final = "inputs.pt"
OUTPUTS: Final = "outputs.pt"
SCRIPT: Final = "record.py"

_SCRIPT: Final = '''"""Record what stock PyTorch's torch.jit answers: python record.py [FOLDER WITH THE CODE ...]

Writes outputs.pt beside this file, for `rekindle doctor --stock`.
"""

import importlib
import sys
from pathlib import Path

import torch

here = Path(__file__).resolve().parent
sys.path[:0] = sys.argv[1:]
outputs = {}
for kind, programs in torch.load(here / "inputs.pt", weights_only=True).items():
    for name, given in programs.items():
        try:
            if kind == "archives":
                program = torch.jit.load(name, map_location="cpu")
            else:
                module, _, path = name.partition(":")
                program = importlib.import_module(module)
                for part in path.split("."):
                    program = getattr(program, part)
            torch.manual_seed(0)
            with torch.no_grad():
                answer = program(*given)
            outputs[name] = {"answer": answer}
        except Exception as error:
            outputs[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
try:
    torch.save(outputs, here / "outputs.pt")
except Exception as error:
    sys.exit(f"the outputs cannot be saved: {error}")
print(f"{len(outputs)} programs recorded in {here / 'outputs.pt'}")
'''


def kept_answers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the inputs and results that the trials in ``folder`` have saved: under ``archives`` by path, under
    ``functions`` by ``module:name``. Each is a dict with ``inputs`` and ``answer``, the result."""
    found: dict[str, dict[str, Any]] = {"archives": {}, "functions": {}}
    for path in sorted(folder.rglob("*.pt")):
        if path.name == "archives.pt":
            found["archives"] |= torch.load(path, weights_only=True)
        elif path.name.startswith("events-") and "changes" not in path.parts:
            found["functions"] |= torch.load(path, weights_only=True)
    return found


def beside_stock(folder: Path, kept: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Compare the saved results with the outputs of stock PyTorch in ``folder``; return the comparison by program.

    ``kept`` has the inputs and results of each program, by the kind of program and its name. If there are no outputs in
    ``folder``, write the inputs and the script that records the outputs, and return a note under the script's name.

    Raises:
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {kind: {name: each["inputs"] for name, each in programs.items()} for kind, programs in kept.items()}
    if not (folder / OUTPUTS).exists():
        torch.save(inputs, folder / INPUTS)
        (folder / SCRIPT).write_text(_SCRIPT, encoding="utf-8")
        count = sum(map(len, inputs.values()))
        return {SCRIPT: f"written, with inputs for {count} programs: run it where stock PyTorch is, then this again"}
    recorded = torch.load(folder / INPUTS, weights_only=True)
    outputs = torch.load(folder / OUTPUTS, weights_only=True)
    found: dict[str, str] = {}
    for kind, programs in kept.items():
        for name, each in programs.items():
            before = recorded.get(kind, {}).get(name)
            if name not in outputs or before is None or difference(before, each["inputs"]) is not None:
                found[name] = f"not compared: its inputs are not those of {INPUTS}; remove the folder and record again"
            elif "error" in outputs[name]:
                found[name] = f"not compared: stock PyTorch raises {outputs[name]['error']}"
            else:
                text = difference(outputs[name]["answer"], copied(each["answer"]))
                found[name] = "agrees" if text is None else f"differs: {text.replace('in eager', 'in stock PyTorch')}"
    return found
