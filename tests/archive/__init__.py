"""Tests of rekindle.archive."""
