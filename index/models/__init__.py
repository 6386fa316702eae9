"""Which model made this index: embedders behind one protocol."""
