"""Tests of ``rekindle doctor``."""
