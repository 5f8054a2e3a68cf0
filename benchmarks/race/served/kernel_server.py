"""Serves calls of one kernel: ``python kernel_server.py SPECIFICATION``, in the environment of its tuner.

A script of the standard library, as it runs in environments without tuner. The specification is JSON:
``calls`` (the library of ``calls.c``), ``kind`` and ``library`` and ``symbol`` of the kernel, ``sizes``,
``dtype`` and ``output`` (of C), ``file`` with the arrays, which all servers map, and ``places``: for each
offset the bytes at which A, B and C begin in the file. A line of JSON on standard input is a request, a line
on standard output the answer:

    {"op": "check", "offset": 0}              calls the kernel once in a forked child
    {"op": "time", "offset": 0, "calls": 9}   the seconds per call of 9 calls
"""

import ctypes
import json
import mmap
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZED, BARE, CBLAS, TVM_FFI, CALLABLE = range(5)  # as in calls.c
DL_INT, DL_FLOAT, DL_BFLOAT = 0, 2, 4  # codes of DLPack
TYPES = {"f32": (DL_FLOAT, 32), "bf16": (DL_BFLOAT, 16), "i8": (DL_INT, 8), "i32": (DL_INT, 32)}
BYTES = {"f32": 4, "bf16": 2, "i8": 1, "i32": 4}
WRONG = 9  # exit status of a child whose kernel reports a failure


class BoundCall(ctypes.Structure):
    """``Call`` of calls.c."""

    _fields_ = (
        ("convention", ctypes.c_int64),
        ("function", ctypes.c_void_p),
        ("object", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("input_code", ctypes.c_int64),
        ("input_bits", ctypes.c_int64),
        ("output_code", ctypes.c_int64),
        ("output_bits", ctypes.c_int64),
    )


@dataclass(frozen=True)
class MappedOperands:
    """Where A, B and C of one offset are: their addresses, and the buffers of the mapped file."""

    sizes: tuple[int, int, int]  # m, n, k
    dtype: str
    output: str
    addresses: tuple[int, int, int]
    buffers: tuple[memoryview, memoryview, memoryview]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Returns the shapes of A, B and C."""
        m, n, k = self.sizes
        return (m, k), (k, n), (m, n)


@dataclass(frozen=True)
class BoundKernel:
    """A kernel with its operands: how it is called, and what a check calls where that is something else."""

    convention: int
    function: int  # address
    callable: Callable[[], Any] | None = None
    checked: Callable[[], None] | None = None  # writes C, where a timed call returns a new array


def exported(spec: dict[str, Any], _operands: MappedOperands) -> BoundKernel:
    """Returns a function int f(a, b, c, m, n, k) of a library."""
    return BoundKernel(SIZED, _address(ctypes.CDLL(spec["library"]), spec["symbol"]))


def bare(spec: dict[str, Any], _operands: MappedOperands) -> BoundKernel:
    """Returns a function void f(a, b, c) of a library."""
    return BoundKernel(BARE, _address(ctypes.CDLL(spec["library"]), spec["symbol"]))


def cblas(spec: dict[str, Any], _operands: MappedOperands) -> BoundKernel:
    """Returns a library's cblas_sgemm."""
    return BoundKernel(CBLAS, _address(ctypes.CDLL(spec["library"]), spec["symbol"]))


def tvm(spec: dict[str, Any], _operands: MappedOperands) -> BoundKernel:
    """Returns TVM's packed function; its runtime loads the library first, and gives it its context."""
    import tvm as runtime  # type: ignore[import-not-found,unused-ignore]

    KEPT.append(runtime.runtime.load_module(spec["library"]))
    return BoundKernel(TVM_FFI, _address(ctypes.CDLL(spec["library"]), spec["symbol"]))


def iree(spec: dict[str, Any], operands: MappedOperands) -> BoundKernel:
    """Returns a call of an IREE module that writes to C; its runtime imports the arrays without a copy."""
    from iree import runtime  # type: ignore[import-not-found,unused-ignore]

    element = {
        "f32": runtime.HalElementType.FLOAT_32,
        "bf16": runtime.HalElementType.BFLOAT_16,
        "i8": runtime.HalElementType.SINT_8,
        "i32": runtime.HalElementType.SINT_32,
    }
    config = runtime.Config("local-sync")
    module = runtime.VmModule.mmap(config.vm_instance, spec["library"])
    context = runtime.VmContext(config.vm_instance, [*config.default_vm_modules, module])
    function = module.lookup_function(spec["symbol"])
    memory = int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE)
    usage = int(runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING)
    arguments = runtime.VmVariantList(3)
    dtypes = (operands.dtype, operands.dtype, operands.output)
    for buffer, shape, dtype in zip(operands.buffers, operands.shapes, dtypes, strict=True):
        imported = config.device.allocator.import_host_allocation(buffer, memory, usage)
        arguments.push_ref(runtime.HalBufferView(imported, list(shape), element[dtype]))

    def call() -> None:
        context.invoke(function, arguments, runtime.VmVariantList(1))

    KEPT.append((config, module, context, arguments))
    return BoundKernel(CALLABLE, 0, call, call)


def inductor(_spec: dict[str, Any], operands: MappedOperands) -> BoundKernel:
    """Returns a linear layer compiled by inductor: B is its constant weight, and C a new array."""
    import torch
    from inductor_layer import TYPES, compiled_layer  # type: ignore[import-not-found,unused-ignore]

    a_buffer, b_buffer, c_buffer = operands.buffers
    shape_a, shape_b, shape_c = operands.shapes
    a = torch.frombuffer(a_buffer, dtype=TYPES[operands.dtype]).reshape(shape_a)
    b = torch.frombuffer(b_buffer, dtype=TYPES[operands.dtype]).reshape(shape_b)
    c = torch.frombuffer(c_buffer, dtype=TYPES[operands.output]).reshape(shape_c)
    compiled = compiled_layer(a, b)

    def call() -> Any:
        return compiled(a)

    def check() -> None:
        c.copy_(compiled(a).to(c.dtype))

    return BoundKernel(CALLABLE, 0, call, check)


KINDS: dict[str, Callable[[dict[str, Any], MappedOperands], BoundKernel]] = {
    "exported": exported,
    "bare": bare,
    "cblas": cblas,
    "tvm": tvm,
    "iree": iree,
    "inductor": inductor,
}
KEPT: list[Any] = []  # what must live as long as the process


def _address(library: ctypes.CDLL, symbol: str) -> int:
    KEPT.append(library)
    address = ctypes.cast(library[symbol], ctypes.c_void_p).value
    assert address is not None
    return address


class RequestServer:
    """Answers requests; an offset's kernel is loaded at its first use."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._bound: dict[int, tuple[BoundKernel, BoundCall]] = {}
        with Path(spec["file"]).open("r+b") as file:
            self._arrays = mmap.mmap(file.fileno(), 0)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._arrays))
        library = ctypes.PyDLL(spec["calls"])  # keeps the lock, which calls of Python objects need
        self._time_calls = library.time_calls
        self._time_calls.restype = ctypes.c_double

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a request."""
        if request["op"] == "check":
            return self._checked(request["offset"])
        seconds, status = self._timed(request["offset"], request["calls"])
        return {"seconds": seconds, "status": status}

    def _checked(self, offset: int) -> dict[str, Any]:
        """Calls the kernel once in a forked child, which may crash."""
        self._loaded(offset)
        child = os.fork()
        if child == 0:
            self._call_once_and_exit(offset)
        _, ended = os.waitpid(child, 0)
        if os.WIFSIGNALED(ended):
            return {"failure": f"crashes (signal {os.WTERMSIG(ended)})"}
        if os.WEXITSTATUS(ended) != 0:
            return {"failure": "reports a failure"}
        return {}

    def _call_once_and_exit(self, offset: int) -> None:
        status = WRONG
        try:
            bound, _ = self._loaded(offset)
            if bound.checked is None:
                _, failed = self._timed(offset, 1)
                status = WRONG if failed else 0
            else:
                bound.checked()
                status = 0
        finally:
            os._exit(status)

    def _timed(self, offset: int, calls: int) -> tuple[float, int]:
        _, call = self._loaded(offset)
        status = ctypes.c_int64(0)
        seconds = self._time_calls(ctypes.byref(call), ctypes.c_int64(calls), ctypes.byref(status))
        return seconds, status.value

    def _loaded(self, offset: int) -> tuple[BoundKernel, BoundCall]:
        if offset not in self._bound:
            operands = self._operands(offset)
            bound = KINDS[self._spec["kind"]](self._spec, operands)
            self._bound[offset] = bound, _call(bound, operands)
        return self._bound[offset]

    def _operands(self, offset: int) -> MappedOperands:
        spec = self._spec
        m, n, k = spec["sizes"]
        dtype, output = spec["dtype"], spec["output"]
        counts = (m * k * BYTES[dtype], k * n * BYTES[dtype], m * n * BYTES[output])
        starts = spec["places"][str(offset)]
        mapped = memoryview(self._arrays)
        a, b, c = (mapped[start : start + count] for start, count in zip(starts, counts, strict=True))
        first, second, third = (self._base + start for start in starts)
        return MappedOperands((m, n, k), dtype, output, (first, second, third), (a, b, c))


def _call(bound: BoundKernel, operands: MappedOperands) -> BoundCall:
    a, b, c = operands.addresses
    types = (*TYPES[operands.dtype], *TYPES[operands.output])
    if bound.callable is None:
        return BoundCall(bound.convention, bound.function, None, None, a, b, c, *operands.sizes, *types)
    KEPT.append(bound.callable)
    python = ctypes.pythonapi
    function, release = (
        ctypes.cast(python[name], ctypes.c_void_p).value for name in ("PyObject_CallNoArgs", "Py_DecRef")
    )
    return BoundCall(
        bound.convention, function, id(bound.callable), release, a, b, c, *operands.sizes, *types
    )


def main() -> None:
    """Answers the requests on standard input until its end."""
    answers = os.fdopen(os.dup(1), "w")  # what the tuner's own code prints goes to standard error
    os.dup2(2, 1)
    server = RequestServer(json.loads(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever a tuner's runtime raises is the kernel's failure
            reason = str(error).strip().splitlines() or [""]
            answer = {"failure": f"{type(error).__name__}: {reason[0]}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
