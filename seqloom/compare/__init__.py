"""A fair comparison of several models on one dataset: `seqloom.compare(data=..., models=..., out=...)`."""

from seqloom.core.verb import make_callable

make_callable(__name__, "comparing")
