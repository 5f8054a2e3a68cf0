"""Object files of x86-64 code: read as values, and loaded into this process without a linker."""

import ctypes
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tuner.core.errors import CandidateError, Stage

# Reads an object file of x86-64 code: its sections, symbols and relocations, as values.
#
# Format: System V ABI (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html) and its supplement for
# x86-64. Of the tables only what a loader of one file needs is read.

HEADER_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
# e_type, e_machine
RELOCATABLE = 1
X86_64 = 62
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
RELOCATION = struct.Struct("<QQq")  # Elf64_Rela
# SHT_SYMTAB, SHT_RELA, SHT_NOBITS
SYMBOL_TABLE = 2
RELOCATIONS = 4
WITHOUT_CONTENT = 8
# SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR
WRITTEN = 1
LOADED = 2
EXECUTED = 4
UNWINDING = ".eh_frame"  # for exceptions, which no kernel has
PAGE_BYTES = mmap.PAGESIZE
# R_X86_64_*: type -> format of the field, and whether the address of the field is subtracted
FIELDS = {1: ("<Q", False), 2: ("<i", True), 4: ("<i", True), 24: ("<q", True)}
# What code may call: exp, memcpy, malloc. None: all libraries that Python is linked with, since old C
# libraries have sem_wait in a separate file.
LIBRARIES = ("libm.so.6", "libc.so.6", None)
ABSOLUTE = 0xFFF1  # SHN_ABS


@dataclass(frozen=True)
class ElfSection:
    """A section that is loaded: its bytes (zeros for .bss), and its alignment in bytes."""

    number: int
    content: bytes
    alignment: int
    is_code: bool


@dataclass(frozen=True)
class ElfSymbol:
    """A symbol: an offset in a section, or (section 0) a function or variable of a library."""

    name: str
    section: int
    offset: int


@dataclass(frozen=True)
class Relocation:
    """A position in a section at which the address of a symbol, plus ``addend``, is written.

    ``type``: the x86-64 relocation type (R_X86_64_*), which says in which form.
    """

    section: int
    offset: int
    type: int
    symbol: ElfSymbol
    addend: int


@dataclass(frozen=True)
class ElfObject:
    """The parts of an object file that are needed to load it: sections, symbols, relocations."""

    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]
    relocations: tuple[Relocation, ...]


class _Header(NamedTuple):
    """A section header: Elf64_Shdr."""

    name: int
    type: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    alignment: int
    entry_bytes: int


def read_object(code: bytes) -> ElfObject:
    """Returns the loaded sections (without unwind tables), symbols and relocations of an x86-64 object file.

    Raises ValueError if ``code`` is not such a file.
    """
    try:
        fields = HEADER.unpack_from(code)
        if not code.startswith(HEADER_MAGIC) or fields[1:3] != (RELOCATABLE, X86_64):
            raise ValueError("no object file of x86-64")
        first = fields[6]
        count = fields[12]
        names = fields[13]
        headers = [
            _Header._make(SECTION.unpack_from(code, first + number * SECTION.size)) for number in range(count)
        ]
        sections = []
        for number, header in enumerate(headers):
            if header.flags & LOADED and _text(code, headers[names], header.name) != UNWINDING:
                content = bytes(header.size) if header.type == WITHOUT_CONTENT else _part(code, header)
                is_code = bool(header.flags & EXECUTED)
                sections.append(ElfSection(number, content, max(header.alignment, 1), is_code))
        symbols = tuple(
            ElfSymbol(_text(code, headers[header.link], name), section, value)
            for header in headers
            if header.type == SYMBOL_TABLE
            for name, _, _, section, value, _ in SYMBOL.iter_unpack(_part(code, header))
        )
        relocations = tuple(_relocations(code, headers, {section.number for section in sections}, symbols))
        return ElfObject(tuple(sections), symbols, relocations)
    except (struct.error, IndexError) as error:
        raise ValueError("the object file is cut off or damaged") from error


def _part(code: bytes, header: _Header) -> bytes:
    part = code[header.start : header.start + header.size]
    if len(part) != header.size:
        raise IndexError(header.start)
    return part


def _relocations(
    code: bytes, headers: list[_Header], kept: set[int], symbols: tuple[ElfSymbol, ...]
) -> Iterator[Relocation]:
    for header in headers:
        if header.type == RELOCATIONS and header.info in kept:
            for offset, info, addend in RELOCATION.iter_unpack(_part(code, header)):
                yield Relocation(header.info, offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)


def _text(code: bytes, strings: _Header, at: int) -> str:
    start = strings.start + at
    return code[start : code.index(b"\0", start)].decode()


# Loads an object file into this process without a linker or MLIR: an exported program needs numpy and ctypes.
#
# The JIT compiles for LLVM's large code model, in which code refers to data and functions by their 64-bit
# addresses. So the sections may lie anywhere, and each relocation is an addition.


class LoadedObject:
    """Machine code of an object file, in executable memory of this process as long as this object lives.

    ``addresses``: symbol name -> address.
    """

    def __init__(self, code: bytes, symbols: Mapping[str, int] = MappingProxyType({})) -> None:
        """Loads an object file of x86-64. Raises CandidateError(LOAD) for one that cannot be loaded.

        ``symbols``: addresses by the names that the code may use, before those of the C library.
        """
        try:
            self._load(read_object(code), symbols)
        except (ValueError, OSError, struct.error) as error:
            raise CandidateError(Stage.LOAD, f"machine code: {error}") from error

    def _load(self, elf: ElfObject, symbols: Mapping[str, int]) -> None:
        offsets, code_bytes, size = _layout(elf.sections)
        self._memory = mmap.mmap(-1, size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for section in elf.sections:
            at = offsets[section.number]
            self._memory[at : at + len(section.content)] = section.content
        libraries = list(map(ctypes.CDLL, LIBRARIES))
        for relocation in elf.relocations:
            if relocation.type not in FIELDS:
                raise ValueError(f"relocations of type {relocation.type} are not supported")
            # the symbol's address: the caller's, a section of this code, or a library's
            is_callers = not relocation.symbol.section and relocation.symbol.name in symbols
            if is_callers:
                address = symbols[relocation.symbol.name]
            else:
                address = _address(relocation.symbol, start, offsets, libraries)
            target = address + relocation.addend
            form, is_relative = FIELDS[relocation.type]
            at = offsets[relocation.section] + relocation.offset
            struct.pack_into(form, self._memory, at, target - (start + at if is_relative else 0))
        if code_bytes:
            _make_executable(start, code_bytes)
        self.addresses = {
            symbol.name: start + offsets[symbol.section] + symbol.offset
            for symbol in elf.symbols
            if symbol.name and symbol.section in offsets
        }


def _layout(sections: tuple[ElfSection, ...]) -> tuple[dict[int, int], int, int]:
    offsets: dict[int, int] = {}
    at = code_bytes = 0
    for section in sorted(sections, key=lambda section: not section.is_code):
        if not section.is_code and not code_bytes:
            at = code_bytes = _rounded(at, PAGE_BYTES)
        at = offsets[section.number] = _rounded(at, section.alignment)
        at += len(section.content)
    return offsets, code_bytes or _rounded(at, PAGE_BYTES), _rounded(max(at, 1), PAGE_BYTES)


def _rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def _address(symbol: ElfSymbol, start: int, offsets: dict[int, int], libraries: list[ctypes.CDLL]) -> int:
    if symbol.section in offsets:
        return start + offsets[symbol.section] + symbol.offset
    if symbol.section == ABSOLUTE:
        return symbol.offset
    for library in libraries:
        try:
            return ctypes.cast(getattr(library, symbol.name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise ValueError(f"calls {symbol.name!r}, which the C library does not have")


def _make_executable(start: int, size: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if library.mprotect(start, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "the operating system allows no executable memory")
