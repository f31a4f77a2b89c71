"""``python -m rekindle``."""

from __future__ import annotations

import sys

from rekindle.cli.main import main

sys.exit(main())
