"""Loads an object file into this process without a linker: machine code for numpy and ctypes alone.

The JIT compiles for LLVM's large code model, in which code refers to data and functions by their 64-bit
addresses. So the sections may lie anywhere, and each relocation is an addition.
"""

import ctypes
import mmap
import struct

from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.elf_object import ElfObject, ElfSection, ElfSymbol, read_object

PAGE_BYTES = mmap.PAGESIZE
# R_X86_64_*: kind -> format of the field, and whether the address of the field is subtracted
FIELDS = {1: ("<Q", False), 2: ("<i", True), 4: ("<i", True), 24: ("<q", True)}
# What code may call: exp, memcpy, malloc, and what Python is linked with: sem_wait is in another file in old
# versions of the C library.
LIBRARIES = ("libm.so.6", "libc.so.6", None)
ABSOLUTE = 0xFFF1  # SHN_ABS


class LoadedObject:
    """Machine code of an object file in the memory of this process; freed with this object.

    ``addresses`` has the address of each function and object that the file defines, by its name.
    """

    def __init__(self, code: bytes) -> None:
        """Loads an object file of x86-64. Raises CandidateError(LOAD) for one that cannot be loaded."""
        try:
            found = read_object(code)
            self._load(found)
        except (ValueError, OSError, struct.error) as error:
            raise CandidateError(Stage.LOAD, f"machine code: {error}") from error

    def _load(self, found: ElfObject) -> None:
        places, code_bytes, size = _layout(found.sections)
        self._memory = mmap.mmap(-1, size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for section in found.sections:
            at = places[section.number]
            self._memory[at : at + len(section.content)] = section.content
        libraries = [ctypes.CDLL(name) for name in LIBRARIES]
        for each in found.relocations:
            if each.kind not in FIELDS:
                raise ValueError(f"relocations of kind {each.kind} are not supported")
            target = _address(each.symbol, start, places, libraries) + each.addend
            form, is_relative = FIELDS[each.kind]
            at = places[each.section] + each.offset
            struct.pack_into(form, self._memory, at, target - (start + at if is_relative else 0))
        if code_bytes:
            _make_executable(start, code_bytes)
        self.addresses = {
            symbol.name: start + places[symbol.section] + symbol.offset
            for symbol in found.symbols
            if symbol.name and symbol.section in places
        }


def _layout(sections: tuple[ElfSection, ...]) -> tuple[dict[int, int], int, int]:
    """Returns where each section lies, the bytes of all code, which comes first, and of everything."""
    places: dict[int, int] = {}
    at = code_bytes = 0
    for section in sorted(sections, key=lambda each: not each.is_code):
        if not section.is_code and not code_bytes:
            at = code_bytes = _rounded(at, PAGE_BYTES)
        at = places[section.number] = _rounded(at, section.alignment)
        at += len(section.content)
    return places, code_bytes or _rounded(at, PAGE_BYTES), _rounded(max(at, 1), PAGE_BYTES)


def _rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def _address(symbol: ElfSymbol, start: int, places: dict[int, int], libraries: list[ctypes.CDLL]) -> int:
    if symbol.section in places:
        return start + places[symbol.section] + symbol.offset
    if symbol.section == ABSOLUTE:
        return symbol.offset
    for library in libraries:
        try:
            return ctypes.cast(getattr(library, symbol.name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise ValueError(f"calls {symbol.name!r}, which the C library does not have")


def _make_executable(start: int, size: int) -> None:
    """Makes pages read-only and executable. Raises OSError where the system does not allow this."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if library.mprotect(start, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "the operating system allows no executable memory")
