"""C functions that compiled host code calls: MLIR's runner functions, the heap, the C math library."""

import ctypes
import os
import re
import time
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_double, c_float, c_int64, c_size_t, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.core.device import AbstractHostWatch
from tuner.core.numpy_types import DTYPES
from tuner.mlir.effects.runner_signatures import C_INTERFACE, CLOCKS, MEMREFS, PRINTED_SCALARS, SHAPES
from tuner.programs.interpreter.printing import number_text
from tuner.programs.lowering.host_code import MATH_PREFIX
from tuner.programs.run.host_errors import HostFaults, addresses_of
from tuner.programs.run.marshalling import dtype_of
from tuner.runtime.arrays import MemRef, array_of

# The heap of compiled host code; freed memory is kept until no device work can use it any more.

POISON = 0xFF  # all bits set: NaN in every float type
STDERR = 2
MATH_LIBRARY = "libm.so.6"
DECLARED = re.compile(rf"llvm\.func @{MATH_PREFIX}(\w+)\(")
ARGUMENTS: dict[str, Any] = {
    "i64": c_int64,
    "i16": c_uint16,
    "f32": c_float,
    "f64": c_double,
    "ptr": c_char_p,
}
Write = Callable[[str], object]  # receives text, like the ``write`` method of a stream
READINGS: dict[str, Callable[[], float]] = {"rtclock": time.perf_counter, "nanoTime": time.perf_counter_ns}


class HostHeap:
    """The C functions ``malloc``, ``aligned_alloc`` and ``free`` of compiled host code.

    Their addresses are valid as long as this object. ``watch``, of a device that checks host accesses, is
    notified of frees; with it, new memory is filled with NaN.
    """

    def __init__(self, watch: AbstractHostWatch | None) -> None:
        self._watch = watch
        self._libc = _libc()
        self._sizes: dict[int, int] = {}  # address of each allocation in use -> its size in bytes
        self._freed: list[int] = []
        self._functions = {
            "malloc": ctypes.CFUNCTYPE(c_void_p, c_size_t)(self._allocate),
            "aligned_alloc": ctypes.CFUNCTYPE(c_void_p, c_size_t, c_size_t)(self._allocate_aligned),
            "free": ctypes.CFUNCTYPE(None, c_void_p)(self.free),
        }

    def addresses(self) -> dict[str, int]:
        return addresses_of(self._functions)

    @property
    def in_use(self) -> int:
        return len(self._sizes)

    def free(self, address: int | None) -> None:
        """Marks a block of this heap as freed.

        Its memory stays until ``give_back``, because device work may still use it.
        """
        if address not in self._sizes:
            return
        size_bytes = self._sizes.pop(address)
        if self._watch is not None:
            self._watch.host_writes(address, size_bytes)
        self._freed.append(address)

    def free_all(self) -> None:
        """Marks all blocks in use as freed, after a call that has failed: nothing uses them any more."""
        for address in tuple(self._sizes):
            self.free(address)

    def take_freed(self) -> tuple[int, ...]:
        """Returns the addresses of freed blocks and forgets them; the caller passes them to ``give_back``."""
        freed = tuple(self._freed)
        self._freed = []
        return freed

    def give_back(self, addresses: tuple[int, ...]) -> None:
        """Returns freed memory blocks to the operating system's allocator; no work may use them any more."""
        for address in addresses:
            self._libc.free(address)

    def _allocate(self, size_bytes: int) -> int | None:
        return self._known(self._libc.malloc(max(size_bytes, 1)), size_bytes)

    def _allocate_aligned(self, alignment_bytes: int, size_bytes: int) -> int | None:
        return self._known(self._libc.aligned_alloc(alignment_bytes, size_bytes), size_bytes)

    def _known(self, address: int | None, size_bytes: int) -> int | None:
        if not address:  # compiled code does not check for NULL, and crashes when it writes there
            os.write(STDERR, f"found no {size_bytes} bytes of host memory\n".encode())
            return None
        self._sizes[address] = size_bytes
        if self._watch is not None:
            ctypes.memset(address, POISON, size_bytes)
        return address


def _libc() -> Any:
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.aligned_alloc.restype = ctypes.c_void_p
    library.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.free.restype = None
    library.free.argtypes = [ctypes.c_void_p]
    return library


def math_symbols(llvm_text: str) -> dict[str, int]:
    """Returns the addresses of C math functions that host code calls, by their names ``math_NAME``.

    ``llvm_text``: the result of ``with_prefixed_c_functions``. {} where there is no C math library.
    """
    names = sorted(set(DECLARED.findall(llvm_text)))
    try:
        library = ctypes.CDLL(MATH_LIBRARY)
    except OSError:
        return {}
    functions = {MATH_PREFIX + name: getattr(library, name, None) for name in names}
    return addresses_of({name: function for name, function in functions.items() if function is not None})


# MLIR's runner functions for compiled code that calls them; printed text goes to a Python function.
#
# The text is the same as mlir-runner's, see the C++ code of
# ``mlir/include/mlir/ExecutionEngine/RunnerUtils.h``.


def discard(_text: str) -> None:
    """Ignores printed text; used for calls that are timed."""


class RunnerFunctions:
    """The C functions of MLIR's runner libraries, which print and read clocks.

    Their addresses are valid as long as this object.
    """

    def __init__(
        self,
        write: Write,  # receives the printed text
        watch: AbstractHostWatch | None = None,  # checks host accesses
        faults: HostFaults | None = None,  # stores an error for a print of device memory, which is left out
    ) -> None:
        self._write = write
        self._watch = watch
        self._faults = faults
        self._functions: dict[str, Any] = {name: self._scalar(name) for name in PRINTED_SCALARS}
        for name, type_ in CLOCKS.items():
            self._functions[name] = ctypes.CFUNCTYPE(ARGUMENTS[type_])(READINGS[name])
        self._functions |= {C_INTERFACE + name: self._functions[name] for name in (*PRINTED_SCALARS, *CLOCKS)}
        for names, text_of in ((MEMREFS, memref_text), (SHAPES, shape_text)):
            for name, element in names.items():
                self._add_memref(name, element, text_of)

    def addresses(self) -> dict[str, int]:
        return addresses_of(self._functions)

    def _scalar(self, name: str) -> Any:
        types = [ARGUMENTS[type_] for type_ in PRINTED_SCALARS[name]]
        text_of = SCALAR_TEXTS[name]
        return ctypes.CFUNCTYPE(None, *types)(lambda *values: self._write(text_of(*values)))

    def _add_memref(self, name: str, element: str, text_of: Callable[[MemRef, str], str]) -> None:
        def show(rank: int, descriptor: int) -> None:
            view = MemRef.at(descriptor, rank)
            item_bytes = dtype_of(element).itemsize
            address = view.address(item_bytes)
            if self._faults is not None and self._faults.is_fault(address, "a print"):
                return
            if self._watch is not None:
                self._watch.host_reads(address, view.extent_bytes(item_bytes))
            self._write(text_of(view, element))

        def show_at(address: int) -> None:  # of an unranked descriptor: rank, then a pointer
            show(*(c_int64 * 2).from_address(address))

        self._functions[name] = ctypes.CFUNCTYPE(None, c_int64, c_void_p)(show)
        self._functions[C_INTERFACE + name] = ctypes.CFUNCTYPE(None, c_void_p)(show_at)


def memref_text(view: MemRef, element: str) -> str:
    """Returns what mlir-runner prints of a memref: address, offset, sizes, strides and all elements."""
    array = array_of(view, dtype_of(element))
    if array.ndim == 0:
        numbers = f"[{number_text(array[()])}]"
    else:
        numbers = "".join(_nested(array, array.ndim))
    return f"Unranked Memref {_head(view)} data = \n{numbers}\n"


def shape_text(view: MemRef, _element: str) -> str:
    """Returns what mlir-runner prints of a memref's shape: address, offset, sizes, strides, no elements."""
    return f"Unranked Memref {_head(view)}\n"


def _head(view: MemRef) -> str:
    sizes, strides = (", ".join(map(str, numbers)) for numbers in (view.sizes, view.strides))
    at = f"base@ = {view.aligned:#x} rank = {len(view.sizes)} offset = {view.offset}"
    return f"{at} sizes = [{sizes}] strides = [{strides}]"


def _nested(array: NDArray[Any], rank: int) -> Iterator[str]:
    if array.ndim == 0:
        yield number_text(array[()])
        return
    between = ", \n" if array.ndim > 1 else ", "
    indent = " " * (rank - array.ndim + 1)  # as many as there are open brackets
    yield "["
    for number, inner in enumerate(array):
        if number > 0:
            yield between + indent
        yield from _nested(np.asarray(inner), rank)
    yield "]"


SCALAR_TEXTS: dict[str, Callable[..., str]] = {
    "printI64": str,
    "printU64": lambda value: str(c_uint64(value).value),
    "printF16": lambda bits: number_text(np.uint16(bits).view(DTYPES["f16"])),
    "printBF16": lambda bits: number_text(np.uint16(bits).view(DTYPES["bf16"])),
    "printF32": number_text,
    "printF64": number_text,
    "printString": lambda text: text.decode(errors="replace"),
    "printOpen": lambda: "( ",
    "printClose": lambda: " )",
    "printComma": lambda: ", ",
    "printNewline": lambda: "\n",
    "printFlops": lambda per_second: f"{per_second / 1e9:f} GFLOPS\n",
}
