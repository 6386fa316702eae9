"""How a passage becomes what it says: the extractors, each in a file of its own."""
