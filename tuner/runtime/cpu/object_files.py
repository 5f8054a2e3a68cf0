"""Object files of x86-64 and AArch64: read as values, and loaded into this process without a linker.

``read_object`` parses a file into an ``ElfObject``: sections, symbols, relocations. ``LoadedObject`` copies
the sections into memory, writes the relocated addresses, and makes the code executable.
"""

import ctypes
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tuner.core.errors import CandidateError, Stage
from tuner.core.instruction_sets import AARCH64, X86_64
from tuner.runtime.cpu.host import own_architecture

# Reads an object file: its sections, symbols and relocations, as values.
#
# Format: System V ABI (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html) and its supplements for
# x86-64 and AArch64 (https://github.com/ARM-software/abi-aa, "ELF for the Arm 64-bit Architecture"). Of the
# tables only what a loader of one file needs is read.

HEADER_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
# e_type, e_machine
RELOCATABLE = 1
MACHINES = {X86_64.name: 62, AARCH64.name: 183}
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
# Architecture -> type of a relocation -> format of the field, and whether its address is subtracted:
# R_X86_64_64, PC32, PLT32, PC64; R_AARCH64_ABS64, PREL64, PREL32
FIELDS = {
    X86_64.name: {1: ("<Q", False), 2: ("<i", True), 4: ("<i", True), 24: ("<q", True)},
    AARCH64.name: {257: ("<Q", False), 260: ("<q", True), 261: ("<i", True)},
}
# R_AARCH64_*: types of fields within an instruction
ADR_PREL_PG_HI21 = 275
# ADD_ABS_LO12_NC and LDST*_ABS_LO12_NC: type -> by how many bits the offset in a page is shifted
PAGE_OFFSETS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
# MOVW_UABS_G0, G0_NC, G1, ... G3: type -> by how many bits the address is shifted; of the large code model
ADDRESS_PARTS = {263: 0, 264: 0, 265: 16, 266: 16, 267: 32, 268: 32, 269: 48}
CALLS = (282, 283)  # JUMP26, CALL26
CALL_REACH = 1 << 27  # bytes, in each direction
STUB = struct.Struct("<IIQ")  # ldr x16, #8; br x16; the address
STUB_CODE = (0x58000050, 0xD61F0200)
ADR_PAGE_BITS = 12
# What code may call: exp, memcpy, malloc. None: all libraries that Python is linked with, since old C
# libraries have sem_wait in a separate file.
LIBRARIES = ("libm.so.6", "libc.so.6", None)
COMPILER_LIBRARY = "libgcc_s.so.1"
ABSOLUTE = 0xFFF1  # SHN_ABS


@dataclass(frozen=True)
class ElfSection:
    """A section that is loaded: its bytes (zeros for .bss), and its alignment in bytes."""

    index: int  # in the file's table of sections
    content: bytes
    alignment: int
    is_code: bool
    is_written: bool  # by the code


@dataclass(frozen=True)
class ElfSymbol:
    """A symbol: an offset in a section, or (section 0) a function or variable of a library."""

    name: str
    section: int
    offset: int


@dataclass(frozen=True)
class Relocation:
    """A position in a section at which the address of a symbol, plus ``addend``, is written.

    ``type``: the relocation type (R_X86_64_*, R_AARCH64_*), which says in which form.
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
    """Returns the loaded sections (without unwind tables), symbols and relocations of an object file.

    Raises ValueError if ``code`` is not an object file of this processor's architecture.
    """
    architecture = own_architecture().name
    try:
        fields = HEADER.unpack_from(code)
        if not code.startswith(HEADER_MAGIC) or fields[1:3] != (RELOCATABLE, MACHINES[architecture]):
            raise ValueError(f"no object file of {architecture}")
        first = fields[6]
        count = fields[12]
        names = fields[13]
        headers = [
            _Header._make(SECTION.unpack_from(code, first + index * SECTION.size)) for index in range(count)
        ]
        sections = []
        for index, header in enumerate(headers):
            if header.flags & LOADED and _text(code, headers[names], header.name) != UNWINDING:
                content = bytes(header.size) if header.type == WITHOUT_CONTENT else _part(code, header)
                is_code = bool(header.flags & EXECUTED)
                is_written = bool(header.flags & WRITTEN)
                sections.append(ElfSection(index, content, max(header.alignment, 1), is_code, is_written))
        symbols = tuple(
            ElfSymbol(_text(code, headers[header.link], name), section, value)
            for header in headers
            if header.type == SYMBOL_TABLE
            for name, _, _, section, value, _ in SYMBOL.iter_unpack(_part(code, header))
        )
        relocations = tuple(_relocations(code, headers, {section.index for section in sections}, symbols))
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
# The JIT compiles for LLVM's large code model on x86-64, in which code refers to data and functions by their
# 64-bit addresses. So the sections may lie anywhere, and each relocation is an addition. On AArch64
# instructions have parts of addresses; a call of a library, which is too far away, goes through a stub after
# the code.


class LoadedObject:
    """Machine code of an object file, in executable memory of this process as long as this object lives.

    ``addresses``: symbol name -> address.
    """

    def __init__(self, code: bytes, symbols: Mapping[str, int] = MappingProxyType({})) -> None:
        """Loads an object file. Raises CandidateError(LOAD) for one that cannot be loaded.

        ``symbols``: addresses by the names that the code may use, before those of the C library.
        """
        try:
            self._load(read_object(code), symbols)
        except (ValueError, OSError, struct.error) as error:
            raise CandidateError(Stage.LOAD, f"machine code: {error}") from error

    def _load(self, elf: ElfObject, symbols: Mapping[str, int]) -> None:
        stubs = _stubs(elf.relocations)
        offsets, code_bytes, size = _layout(elf.sections, len(stubs) * STUB.size)
        self._memory = mmap.mmap(-1, size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for section in elf.sections:
            at = offsets[section.index]
            self._memory[at : at + len(section.content)] = section.content
        libraries = list(map(ctypes.CDLL, LIBRARIES))
        for relocation in elf.relocations:
            _require_known(relocation.type)
            # the symbol's address: the caller's, a section of this code, or a library's
            is_callers = not relocation.symbol.section and relocation.symbol.name in symbols
            if is_callers:
                address = symbols[relocation.symbol.name]
            else:
                address = _address(relocation.symbol, start, offsets, libraries)
            at = offsets[relocation.section] + relocation.offset
            target = address + relocation.addend
            if relocation.type in CALLS and own_architecture() is AARCH64:
                stub = code_bytes - STUB.size * (stubs[relocation.symbol] + 1)
                STUB.pack_into(self._memory, stub, *STUB_CODE, address)
                if abs(target - start - at) >= CALL_REACH:
                    target = start + stub
            _write_field(self._memory, at, start, relocation.type, target)
        if code_bytes:
            _make_executable(start, code_bytes)
        self.addresses = {
            symbol.name: start + offsets[symbol.section] + symbol.offset
            for symbol in elf.symbols
            if symbol.name and symbol.section in offsets
        }


def _require_known(type_: int) -> None:
    """Raises ValueError for a type of relocation that ``_write_field`` does not write."""
    architecture = own_architecture()
    is_known = type_ in FIELDS[architecture.name]
    if architecture is AARCH64:
        is_known |= type_ in (*CALLS, *PAGE_OFFSETS, *ADDRESS_PARTS, ADR_PREL_PG_HI21)
    if not is_known:
        raise ValueError(f"relocations of type {type_} are not supported")


def _stubs(relocations: tuple[Relocation, ...]) -> dict[ElfSymbol, int]:
    """Returns symbol -> index of its stub, for the symbols that AArch64 code calls; {} on x86-64."""
    stubs: dict[ElfSymbol, int] = {}
    if own_architecture() is AARCH64:
        for relocation in relocations:
            if relocation.type in CALLS:
                stubs.setdefault(relocation.symbol, len(stubs))
    return stubs


def _write_field(memory: mmap.mmap, at: int, start: int, type_: int, target: int) -> None:
    """Writes the address ``target`` into ``memory`` at the offset ``at``, as a relocation of ``type_`` says.

    ``start``: address of the memory.
    """
    fields = FIELDS[own_architecture().name]
    if type_ in fields:
        form, is_relative = fields[type_]
        value = target
        if is_relative:
            value -= start + at
        struct.pack_into(form, memory, at, value)
        return
    (word,) = struct.unpack_from("<I", memory, at)
    if type_ in CALLS:
        word |= (target - start - at >> 2) & 0x3FFFFFF
    elif type_ == ADR_PREL_PG_HI21:
        pages = (target >> ADR_PAGE_BITS) - (start + at >> ADR_PAGE_BITS)
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif type_ in ADDRESS_PARTS:
        word |= (target >> ADDRESS_PARTS[type_] & 0xFFFF) << 5
    else:
        word |= (target & 0xFFF) >> PAGE_OFFSETS[type_] << 10
    struct.pack_into("<I", memory, at, word)


def _layout(sections: tuple[ElfSection, ...], stubs_bytes: int) -> tuple[dict[int, int], int, int]:
    """Places sections in memory, code first; returns ({section's index: offset}, code bytes, all bytes).

    Both numbers of bytes are whole pages; the pages of code have room for the stubs at their end.
    """
    offsets: dict[int, int] = {}
    at = code_bytes = 0
    for section in sorted(sections, key=lambda section: not section.is_code):
        if not section.is_code and not code_bytes:
            at = code_bytes = _rounded(at + stubs_bytes, PAGE_BYTES)
        at = offsets[section.index] = _rounded(at, section.alignment)
        at += len(section.content)
    if not code_bytes:
        at = code_bytes = _rounded(at + stubs_bytes, PAGE_BYTES)
    return offsets, code_bytes, _rounded(max(at, 1), PAGE_BYTES)


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
    if own_architecture() is AARCH64:  # has caches of instructions that do not see what was written
        clear = ctypes.CDLL(COMPILER_LIBRARY)["__clear_cache"]
        clear(ctypes.c_void_p(start), ctypes.c_void_p(start + size))
