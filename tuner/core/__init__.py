"""Values and ports (abstract interfaces) that all packages share; imports no other package of tuner."""

# What other packages may import; the rest is inside.
__all__ = [
    "candidate",
    "dtypes",
    "epilogues",
    "errors",
    "fusions",
    "gpu",
    "gpu_code",
    "interfaces",
    "machine",
    "numpy_types",
    "problem",
    "processors",
    "programs",
    "progress",
    "quantization",
    "records",
    "reliability",
    "remote_results",
    "requests",
    "round_quality",
    "runs",
    "serialization",
    "typed_arguments",
]
