"""The command that tunes what a question was about, for advice."""

import shlex

from tuner.core.runs import TrialQuery

PLAIN = {"dtype": "f32", "layout": "nn", "epilogue": "none", "output": "", "threads": 1, "target": None}


def tune_command(query: TrialQuery) -> str:
    """Returns ``tuner tune matmul 64x64x64 --dtype f64``: with each flag whose value is not the usual one."""
    words = ["tuner", "tune", query.operation or "matmul", query.shape or "512x512x512"]
    for name, plain in PLAIN.items():
        value = getattr(query, name)
        if value is not None and value != plain:
            words += [f"--{name}", str(value)]
    return shlex.join(words)
