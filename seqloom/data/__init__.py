"""Data: texts are read as streams, split in order, tokenised once into memory-mapped files. No torch here."""
