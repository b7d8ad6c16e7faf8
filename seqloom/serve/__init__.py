"""A server for runs and indexes."""
