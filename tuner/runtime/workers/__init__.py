"""Child processes that compile, verify and time candidates, and the runners that use them."""

# What other packages may import; the rest is inside.
__all__ = [
    "child_process",
    "limits",
    "measurement_worker",
    "pool",
    "processes",
    "protocol",
    "runner",
    "services",
    "worker",
]
