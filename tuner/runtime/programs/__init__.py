"""Compiled host programs on this processor: code, memory, arguments, errors; ports to a device's programs."""

# What other packages may import; the rest is inside.
__all__ = [
    "devices",
    "host_errors",
    "host_heap",
    "host_program",
    "machine_code",
    "marshalling",
    "runner_functions",
]
