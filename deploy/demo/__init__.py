"""The demo: a year in a small harbour town, indexed while it changes."""
