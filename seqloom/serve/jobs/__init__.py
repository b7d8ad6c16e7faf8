"""Training and comparing from the page: what is asked for is kept in SQLite and done by child processes."""
