"""A whole program, compiled for a GPU: host code that launches kernels, and the types of its arguments."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from tuner.core.errors import UsageError
from tuner.core.problem import Problem

Form = Literal["streams", "tokens", "sync"]  # how a program orders its device work
FORMS: tuple[Form, ...] = get_args(Form)
# By default CUDA has 8 connections to a device; streams beyond them share one. CUDA programming guide,
# CUDA_DEVICE_MAX_CONNECTIONS.
MAX_STREAMS = 8
DEVICE_ATTRIBUTE = "tuner.device"  # attribute of an argument that is in device memory already
LoweringStep = Literal["device-memory", "async", "streams", "gpux", "llvm", "ptx"]
STEPS: tuple[LoweringStep, ...] = get_args(LoweringStep)
# Steps whose text differs by ``form``, which only these take; each earlier step shows one fixed form.
WITH_FORM: tuple[LoweringStep, ...] = ("llvm", "ptx")


@dataclass(frozen=True)
class DeviceOptions:
    """How a program issues its device work.

    Raises UsageError for an unknown form and for less than one stream.
    """

    form: Form = "streams"
    max_streams: int = MAX_STREAMS  # of the form "streams"
    device_arguments: bool = False  # buffer arguments of public functions are in device memory already
    pinned: bool = False  # host memory that is allocated and copied is page-locked (gpu.alloc host_shared)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"form: found {self.form!r}, allowed {', '.join(FORMS)}")
        if self.max_streams < 1:
            raise UsageError(f"max_streams: found {self.max_streams}, allowed 1 and more")


DEFAULTS = DeviceOptions()


@dataclass(frozen=True)
class BufferType:
    """The type of a buffer that a compiled host function takes or returns: a ranked memref."""

    element: str  # "f32", "f16", "bf16", "f64", "i32", ...
    shape: tuple[int | None, ...]  # None: dynamic, known at the call


@dataclass(frozen=True)
class ScalarType:
    """The type of a number that a compiled host function takes or returns by value."""

    element: str  # "index", "f32", "i64", ...


ValueType = BufferType | ScalarType


def value_type_text(value: ValueType) -> str:
    """Returns a type as MLIR writes it: of an array the text in memref<...>, "4x?xf32"; of a number "f32"."""
    sizes = value.shape if isinstance(value, BufferType) else ()
    return "x".join(["?" if size is None else str(size) for size in sizes] + [value.element])


@dataclass(frozen=True)
class MatmulKernel:
    """A GPU kernel that computes a whole matmul in one launch: its name, its problem, its parameters."""

    name: str
    problem: Problem
    buffers: tuple[str, ...]  # "a", "b", "c", in the order of its parameters


@dataclass(frozen=True)
class ResidentBuffer:
    """Memory that a program takes after its arguments, and keeps from call to call: a weight, a global.

    It is memory of the device, or of the host for a program without a device.
    """

    type: BufferType
    # before the first call: bytes, or an array of them; None: those of a weight that is not known yet
    content: Any = field(repr=False, compare=False)
    is_written: bool
    weight: int | None = None  # index of the weight that it contains; None: another content

    @property
    def data(self) -> Any:
        """Returns ``content``. Raises ValueError for a weight that is not known yet."""
        if self.content is None:
            raise ValueError(f"weight {self.weight}: the program has not got its data")
        return self.content


@dataclass(frozen=True)
class DeviceFusion:
    """A fusion of a program for a GPU: its operations, and why they are not one kernel, if they are not."""

    kind: str  # one of tuner.core.fusions.KINDS
    ops: tuple[str, ...]  # names of the payload's operations, in order
    reason: str = ""  # why it is not one kernel; "": it is


@dataclass(frozen=True)
class DeviceProgram:
    """A compiled host program that runs work on a GPU: its code, and how to call its entry function."""

    llvm: str  # LLVM-dialect text; contains the kernels as binaries
    entry: str  # function with llvm.emit_c_interface
    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]  # buffers are host memory that the caller frees
    written: tuple[bool, ...]  # per argument: the function may change it
    device_arguments: bool = False  # True: buffers of the arguments are device memory, nothing is copied
    stream_slots: int = 0  # trailing !llvm.ptr arguments: streams, the caller's first; 0: none
    interpreted: str = ""  # MLIR of kernels that are not compiled but run by tuner.gpu.interpreter
    # Results of sampled launches are compared with these two.
    reference: str = ""  # MLIR of the kernels that can be interpreted
    matmuls: tuple[MatmulKernel, ...] = ()
    resident: tuple[ResidentBuffer, ...] = ()  # arguments after those of the caller
    # () for a program that is not computed as fusions
    fusions: tuple[DeviceFusion, ...] = ()

    def with_resident(self, resident: tuple[ResidentBuffer, ...]) -> "DeviceProgram":
        """Returns the program with its last arguments as resident memory, one for each of ``resident``."""
        count = len(self.arguments) - len(resident)
        return replace(
            self, arguments=self.arguments[:count], written=self.written[:count], resident=resident
        )

    @property
    def signature(self) -> str:
        """Returns name and types of the entry function, as text: main(4x8xf32, 8xf32) -> (4xf32)."""
        arguments, results = (
            ", ".join(map(value_type_text, types)) for types in (self.arguments, self.results)
        )
        return f"{self.entry}({arguments}) -> ({results})"


@dataclass(frozen=True)
class DeviceWork:
    """Kernel launches and copied bytes of one call of a program; graph launches are not counted."""

    launches: int = 0
    copies_in: int = 0  # from host to device memory
    copied_in_bytes: int = 0
    copies_out: int = 0  # from device to host memory
    copied_out_bytes: int = 0
    copied_inside_bytes: int = 0  # from device to device memory

    def with_launch(self) -> "DeviceWork":
        return replace(self, launches=self.launches + 1)

    def since(self, earlier: "DeviceWork") -> "DeviceWork":
        names = [field.name for field in fields(self)]
        return DeviceWork(**{name: getattr(self, name) - getattr(earlier, name) for name in names})

    def with_copy(self, size_bytes: int, *, to_device: bool, from_device: bool) -> "DeviceWork":
        """Returns this work plus a copy of ``size_bytes`` bytes; a copy from host to host is not counted."""
        if to_device and from_device:
            return replace(self, copied_inside_bytes=self.copied_inside_bytes + size_bytes)
        if to_device:
            total = self.copied_in_bytes + size_bytes
            return replace(self, copies_in=self.copies_in + 1, copied_in_bytes=total)
        if from_device:
            total = self.copied_out_bytes + size_bytes
            return replace(self, copies_out=self.copies_out + 1, copied_out_bytes=total)
        return self
