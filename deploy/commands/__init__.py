"""The commands, one verb a file; what it needs beyond its options is imported when it runs, so that help is quick."""
