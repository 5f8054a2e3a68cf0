"""How a program's device work is made asynchronous, and which memory it works on. Needs no MLIR."""

from dataclasses import dataclass
from typing import Literal, get_args

from tuner.core.errors import UsageError

Form = Literal["streams", "tokens", "sync"]
FORMS: tuple[Form, ...] = get_args(Form)
# CUDA gives each device 8 connections to the host; streams beyond them share one. CUDA programming guide,
# CUDA_DEVICE_MAX_CONNECTIONS.
MAX_STREAMS = 8


@dataclass(frozen=True)
class DeviceOptions:
    """How a program issues its device work: asynchronous form, number of streams, kinds of memory.

    Raises UsageError for an unknown form, and for fewer than one stream.
    """

    form: Form = "streams"
    max_streams: int = MAX_STREAMS
    device_arguments: bool = False  # buffer arguments of public functions are in device memory already
    pinned: bool = False  # host memory that is allocated and copied is page-locked (gpu.alloc host_shared)

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown form, or for fewer than one stream."""
        if self.form not in FORMS:
            raise UsageError(f"form: found {self.form!r}, allowed {', '.join(FORMS)}")
        if self.max_streams < 1:
            raise UsageError(f"max_streams: found {self.max_streams}, allowed 1 and more")


DEFAULTS = DeviceOptions()
