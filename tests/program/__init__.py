"""Tests of rekindle.program."""
