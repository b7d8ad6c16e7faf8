"""The recommendation: one model, why, and what would change it; or none, and what would settle the question."""
