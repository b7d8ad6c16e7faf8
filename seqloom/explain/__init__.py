"""Look inside any run: `seqloom.explain(run, text)`."""

from seqloom.core.verb import make_callable

make_callable(__name__, "explaining")
