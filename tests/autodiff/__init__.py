"""Tests of rekindle.autodiff."""
