"""The tests mirror the components."""
