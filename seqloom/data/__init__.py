"""Data: reading, checking, splitting and tokenising (once, into memory-mapped files). Nothing here imports torch."""
