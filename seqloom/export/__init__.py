"""Models in the formats of other programs: `seqloom.export(run, to="onnx", out=...)`."""

from seqloom.core.verb import make_callable

make_callable(__name__, "exporting")
