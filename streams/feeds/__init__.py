"""Where documents come from: each feed reads one kind of source and yields its events."""
