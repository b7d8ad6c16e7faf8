"""The recommendation: one model, why, and what would change the answer; or none, and what would settle it."""
