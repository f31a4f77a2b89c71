"""Python objects -> programs: recursive scripting."""

from rekindle.scripting.script import script as script
