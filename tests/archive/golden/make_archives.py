"""Write the golden archives of the PyTorch release that runs this file, and what that release answers.

    python make_archives.py FOLDER [PROGRAM...]

writes ``FOLDER/torch-X.Y/PROGRAM.pt`` and ``PROGRAM.json`` beside it for every program that the release knows. The
JSON holds the release, the calls with their inputs, and the answers of the archive *as the release itself loads it*;
there is no pickle in it. It runs under Python 3.6 and PyTorch 1.0 and later, one release to a virtual environment.
"""

import importlib
import json
import os
import sys
import warnings

import torch
from records import encode
from registry import PROGRAMS, parse_release

RELEASE = parse_release(torch.__version__)


def write(folder, name, program):
    """Save one program, load it again, run the calls on what was loaded, and record the answers."""
    torch.manual_seed(7)
    made = program.make()
    path = os.path.join(folder, name + ".pt")
    options = {}
    if made.extra_files:
        options["_extra_files"] = torch._C.ExtraFilesMap() if RELEASE < (1, 7) else {}
        for key, text in made.extra_files.items():
            options["_extra_files"][key] = text
    torch.jit.save(made.module, path, **options)
    loaded = torch.jit.load(path)
    state = sorted(loaded.state_dict().items())
    record = {"torch": torch.__version__.split("+")[0], "state": {name: encode(value) for name, value in state}}
    calls = []
    for method, arguments in made.calls:
        call = {"method": method, "inputs": [encode(argument) for argument in arguments]}
        try:
            call["answer"] = encode(getattr(loaded, method)(*arguments))
        except TypeError:
            raise
        except Exception as error:
            call["raises"] = type(error).__name__
        calls.append(call)
    record["calls"] = calls
    if made.extra_files:
        record["extra_files"] = made.extra_files
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(record, file, separators=(",", ":"))
        file.write("\n")


def main():
    """Write all programs of the release, or those that were named; programs that it refuses are listed."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    modules = ("programs_language", "programs_modules", "programs_operators")
    for module in ("programs_legacy",) if RELEASE < (1, 3) else modules:
        importlib.import_module(module)
    folder = os.path.join(sys.argv[1], "torch-{}.{}".format(*RELEASE))
    os.makedirs(folder, exist_ok=True)
    wanted = sys.argv[2:]
    failed = 0
    for name, program in sorted(PROGRAMS.items()):
        if wanted and name not in wanted:
            continue
        if RELEASE not in program.releases:
            continue
        try:
            write(folder, name, program)
        except Exception as error:
            failed += 1
            sys.stderr.write("{} {}: {}\n".format(torch.__version__, name, str(error)[:600]))
            if os.path.exists(os.path.join(folder, name + ".pt")):
                os.remove(os.path.join(folder, name + ".pt"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
