"""Reads an object file of x86-64 code: its sections, symbols and relocations, as values.

Format: System V ABI (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html) and its supplement for
x86-64. Of the tables only what a loader of one file needs is read.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
RELOCATABLE, X86_64 = 1, 62  # e_type, e_machine
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
RELOCATION = struct.Struct("<QQq")  # Elf64_Rela
SYMBOL_TABLE, RELOCATIONS, WITHOUT_CONTENT = 2, 4, 8  # SHT_SYMTAB, SHT_RELA, SHT_NOBITS
WRITTEN, LOADED, EXECUTED = 1, 2, 4  # SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR
UNWINDING = ".eh_frame"  # for exceptions, which no kernel has


@dataclass(frozen=True)
class ElfSection:
    """A section of the file that is loaded: its bytes (zeros where the file has none) and its alignment."""

    number: int
    content: bytes
    alignment: int
    is_code: bool


@dataclass(frozen=True)
class ElfSymbol:
    """A name or a place: ``section`` and the offset in it; section 0: defined elsewhere."""

    name: str
    section: int
    offset: int


@dataclass(frozen=True)
class Relocation:
    """A place in a section that gets the address of a symbol plus ``addend``, as ``kind`` says."""

    section: int
    offset: int
    kind: int
    symbol: ElfSymbol
    addend: int


@dataclass(frozen=True)
class ElfObject:
    """What of an object file is loaded."""

    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True)
class _Header:
    """A section header: Elf64_Shdr."""

    name: int
    type: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int


def read_object(code: bytes) -> ElfObject:
    """Returns the contents of an object file of x86-64. Raises ValueError for anything else."""
    try:
        return _read(code)
    except (struct.error, IndexError) as error:
        raise ValueError("the object file is cut off or damaged") from error


def _read(code: bytes) -> ElfObject:
    fields = HEADER.unpack_from(code)
    if not code.startswith(HEADER_MAGIC) or fields[1:3] != (RELOCATABLE, X86_64):
        raise ValueError("no object file of x86-64")
    first, count, names = fields[6], fields[12], fields[13]
    headers = [_header(code, first + number * SECTION.size) for number in range(count)]
    kept = {
        number: header
        for number, header in enumerate(headers)
        if header.flags & LOADED and _text(code, headers[names], header.name) != UNWINDING
    }
    sections = tuple(_section(code, number, header) for number, header in kept.items())
    symbols = tuple(_symbols(code, headers))
    relocations = tuple(_relocations(code, headers, set(kept), symbols))
    return ElfObject(sections, symbols, relocations)


def _header(code: bytes, at: int) -> _Header:
    name, kind, flags, _, start, size, link, info, alignment, _ = SECTION.unpack_from(code, at)
    return _Header(name, kind, flags, start, size, link, info, alignment)


def _section(code: bytes, number: int, header: _Header) -> ElfSection:
    content = bytes(header.size) if header.type == WITHOUT_CONTENT else _part(code, header)
    return ElfSection(number, content, max(header.alignment, 1), bool(header.flags & EXECUTED))


def _part(code: bytes, header: _Header) -> bytes:
    part = code[header.start : header.start + header.size]
    if len(part) != header.size:
        raise IndexError(header.start)
    return part


def _symbols(code: bytes, headers: list[_Header]) -> Iterator[ElfSymbol]:
    for header in headers:
        if header.type == SYMBOL_TABLE:
            for name, _, _, section, value, _ in SYMBOL.iter_unpack(_part(code, header)):
                yield ElfSymbol(_text(code, headers[header.link], name), section, value)


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
