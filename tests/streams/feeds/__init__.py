"""Tests of the feeds: the laws that all keep, then what is particular to each."""
