"""The manifest of a native library: a JSON file with its name, methods, requirements and the hashes of its files.

Its last entry is the hash of all others, so that a damaged manifest is recognized.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = "manifest.json"
"""The file of a library that describes it."""

_HASH: Final = "sha256"


def manifest_text(content: Mapping[str, Any]) -> str:
    """Return the text of a manifest, with its hash."""
    return json.dumps({**content, _HASH: _hash_of(content)}, indent=2) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the content of the manifest in a folder, after a check of its hash and of that of the library.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is damaged.
    """
    content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.pop(_HASH, None) != _hash_of(content):
        raise ValueError(f"{MANIFEST} is damaged: its hash differs")
    library = f"lib{content['name']}.so"
    if hashlib.sha256((folder / library).read_bytes()).hexdigest() != content["files"][library]["sha256"]:
        raise ValueError(f"{library} is damaged, or is not the library that {MANIFEST} describes")
    return content


def _hash_of(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
