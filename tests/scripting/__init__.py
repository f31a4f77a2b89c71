"""Tests of rekindle.scripting."""
