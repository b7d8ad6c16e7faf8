"""What a kind of memory can and cannot do: `seqloom.diagnose(models=..., out=...)`."""

from seqloom.core.verb import make_callable

make_callable(__name__, "diagnosing")
