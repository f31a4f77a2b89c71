"""Tests of rekindle.ops."""
