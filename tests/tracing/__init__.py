"""Tests of :mod:`rekindle.tracing`."""
