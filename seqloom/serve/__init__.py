"""A server for runs and indexes: `seqloom.serve(["runs/book"])`. The HTTP process never loads torch."""

from seqloom.core.verb import make_callable

make_callable(__name__, "serving")
