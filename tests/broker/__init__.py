"""A real Kafka on this machine, for tests and for development."""
