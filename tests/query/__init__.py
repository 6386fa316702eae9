"""Tests of query/: one file a module."""
