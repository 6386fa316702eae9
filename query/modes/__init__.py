"""The ways of reading a snapshot, one file a mode."""
