"""How the bytes of a file become title and text: one module a format."""
