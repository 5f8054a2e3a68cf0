"""Object files of several: of the JIT's own form, or of x86-64 for a linker, with arrays that the code reads.

The JIT's code has the 64-bit addresses of its data and functions in its instructions. In a shared library, or
a program that may lie anywhere, they would be written into the code when it is loaded, which many systems
refuse. So each of these instructions becomes one that adds to its own address, of the same length:

    movabs $table, %rcx        lea table(%rip), %rcx; nop
    movabs $memcpy, %rax       mov memcpy@GOTPCREL(%rip), %rax; nop

Format: System V ABI, ELF-64, and its supplement for x86-64.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter

from tuner.runtime.cpu.host import own_architecture
from tuner.runtime.cpu.memory import ALIGNMENT_BYTES
from tuner.runtime.cpu.object_files import (
    EXECUTED,
    HEADER,
    HEADER_MAGIC,
    LOADED,
    MACHINES,
    RELOCATABLE,
    RELOCATION,
    RELOCATIONS,
    SECTION,
    SYMBOL,
    SYMBOL_TABLE,
    WRITTEN,
    ElfObject,
    ElfSection,
    ElfSymbol,
    Relocation,
    read_object,
)

# R_X86_64_*
ADDRESS = 1
RELATIVE = 2  # PC32
CALL = 4  # PLT32
OF_TABLE = 9  # GOTPCREL: of the linker's table with the addresses of functions
FAR = 24  # PC64
LARGE = 0x10000000  # SHF_X86_64_LARGE: may lie more than 2 GiB from the code
# SHT_PROGBITS, SHT_STRTAB; SHF_INFO_LINK
CONTENT = 1
STRINGS = 3
LINKED = 0x40
# st_info: STB_LOCAL and STT_SECTION; STB_GLOBAL and STT_NOTYPE
OF_SECTION = 3
GLOBAL = 1 << 4
HIDDEN = 2  # st_other: for what is linked with it, not for what loads the result
MOVE_REX = (0x48, 0x49)  # before the opcode, the second for registers from r8 on
MOVE = 0xB8  # movabs: this, plus the number of the register
LOAD_ADDRESS = 0x8D  # lea
LOAD = 0x8B  # mov from memory
NO_OPERATION = b"\x0f\x1f\x00"
Bytes = bytes | memoryview


@dataclass(frozen=True)
class LinkedSection:
    """A section of an object file to be written; offsets of its ``relocations`` are in the section."""

    name: str
    flags: int
    alignment: int
    content: Sequence[Bytes]  # one after the other
    relocations: tuple["LinkedRelocation", ...] = ()


@dataclass(frozen=True)
class LinkedRelocation:
    """A position in a section at which the linker writes an address.

    ``target``: index of a section, or the name of a function of another file.
    """

    offset: int
    type: int
    target: int | str
    addend: int


@dataclass(frozen=True)
class LinkedSymbol:
    """A name for an offset in a section, given by its index; not visible outside of the linked library."""

    name: str
    section: int
    offset: int


def merged_object(code: bytes, called: Mapping[str, bytes], function: str) -> bytes:
    """Returns one object file of the JIT's form with the code of several, for this processor.

    Args:
        code: object file whose symbols the result has.
        called: name of a function that ``code`` may call -> object file that defines it.
        function: name of that function in each of these files.

    Raises ValueError for code of another architecture, and for a file without ``function``.
    """
    elf = read_object(code)
    sections: list[LinkedSection] = []
    indices = _indices(elf, 0)
    symbols = [
        LinkedSymbol(symbol.name, indices[symbol.section], symbol.offset)
        for symbol in elf.symbols
        if symbol.name and symbol.section in indices
    ]
    objects = list(map(read_object, called.values()))
    starts = [len(elf.sections)]
    for other in objects:
        starts.append(starts[-1] + len(other.sections))
    defined: dict[str, tuple[int, int]] = {}  # name -> section, offset
    for name, other, start in zip(called, objects, starts, strict=False):
        entry = next((symbol for symbol in other.symbols if symbol.name == function), None)
        if entry is None:
            raise ValueError(f"the object file of {name!r} has no function {function!r}")
        defined[name] = _indices(other, start)[entry.section], entry.offset
    for part, start in zip((elf, *objects), (0, *starts), strict=False):
        own = _indices(part, start)
        sections += map(partial(_merged, elf=part, indices=own, defined=defined), part.sections)
    return _written(sections, symbols)


def _indices(elf: ElfObject, start: int) -> dict[int, int]:
    """Returns {index of a section in ``elf``: its new index}; the new ones count from ``start``."""
    return dict(zip(map(attrgetter("index"), elf.sections), count(start), strict=False))


def _merged(
    section: ElfSection, elf: ElfObject, indices: Mapping[int, int], defined: Mapping[str, tuple[int, int]]
) -> LinkedSection:
    relocations = []
    for relocation in elf.relocations:
        if relocation.section == section.index:
            target, offset = _target(relocation.symbol, indices)
            if target in defined:
                target, offset = defined[str(target)]
            addend = relocation.addend + offset
            relocations.append(LinkedRelocation(relocation.offset, relocation.type, target, addend))
    has_addresses = ADDRESS in map(attrgetter("type"), relocations)
    name, flags = _kind(section, has_addresses=has_addresses)
    return LinkedSection(name, flags, section.alignment, [section.content], tuple(relocations))


def linkable_object(codes: Mapping[str, bytes], function: str, table: str, arrays: Sequence[Bytes]) -> bytes:
    """Returns one object file with the code of several of the JIT's object files, and with arrays.

    Args:
        codes: name of a function in the result -> object file that defines it.
        function: name of the function in each of these files.
        table: name of an array in the result, of pointers to ``arrays``.
        arrays: constant bytes; each begins at a multiple of 64 bytes.

    Raises ValueError for code that is not of x86-64, or that refers to data in another way than the JIT does.
    """
    sections: list[LinkedSection] = []
    symbols: list[LinkedSymbol] = []
    for name, code in codes.items():
        elf = read_object(code)
        indices = _indices(elf, len(sections))
        entry = next(symbol for symbol in elf.symbols if symbol.name == function)
        symbols.append(LinkedSymbol(name, indices[entry.section], entry.offset))
        sections += map(partial(_linked, elf=elf, indices=indices), elf.sections)
    symbols.append(LinkedSymbol(table, len(sections) + 1, 0))
    return _written([*sections, *_array_sections(arrays, len(sections))], symbols)


def _linked(section: ElfSection, elf: ElfObject, indices: Mapping[int, int]) -> LinkedSection:
    content = bytearray(section.content)
    of_section = [relocation for relocation in elf.relocations if relocation.section == section.index]
    linked = partial(_linked_relocation, section=section, content=content, indices=indices)
    relocations = tuple(map(linked, of_section))
    has_addresses = ADDRESS in map(attrgetter("type"), relocations)
    name, flags = _kind(section, has_addresses=has_addresses)
    return LinkedSection(name, flags, section.alignment, [bytes(content)], relocations)


def _kind(section: ElfSection, *, has_addresses: bool) -> tuple[str, int]:
    """Returns the name and the flags that a section gets in the file, by which a linker arranges sections."""
    if section.is_code:
        return ".text", LOADED | EXECUTED
    if section.is_written:
        return ".data", LOADED | WRITTEN
    if has_addresses:
        return ".data.rel.ro", LOADED | WRITTEN  # constant once its addresses are written
    return ".rodata", LOADED


def _linked_relocation(
    relocation: Relocation, section: ElfSection, content: bytearray, indices: Mapping[int, int]
) -> LinkedRelocation:
    """Returns a relocation for the linker; changes an instruction that has an address, in ``content``.

    Raises ValueError for a relocation of a type that the JIT's code does not have.
    """
    target, offset_in_target = _target(relocation.symbol, indices)
    addend = relocation.addend + offset_in_target
    if relocation.type == ADDRESS and section.is_code:
        is_here = isinstance(target, int)
        _make_relative(content, relocation.offset, LOAD_ADDRESS if is_here else LOAD)
        # from the end of the instruction, four bytes after the field
        type_ = RELATIVE if is_here else OF_TABLE
        return LinkedRelocation(relocation.offset + 1, type_, target, addend - 4)
    if relocation.type not in (ADDRESS, RELATIVE, CALL, FAR):
        raise ValueError(f"relocations of type {relocation.type} are not supported")
    return LinkedRelocation(relocation.offset, relocation.type, target, addend)


def _target(symbol: ElfSymbol, indices: Mapping[int, int]) -> tuple[int | str, int]:
    if symbol.section in indices:
        return indices[symbol.section], symbol.offset
    if symbol.section:
        raise ValueError(f"the symbol {symbol.name!r} has no section")
    return symbol.name, 0


def _make_relative(content: bytearray, field: int, opcode: int) -> None:
    """Replaces the instruction with a 64-bit address at offset ``field`` by one with a 32-bit distance."""
    start = field - 2
    rex = content[start]
    move = content[start + 1]
    if rex not in MOVE_REX or move & 0xF8 != MOVE:
        raise ValueError(f"the instruction at {start} has an address, and is not movabs")
    high_register = (rex & 1) << 2  # in another bit of the prefix, where it is not the only operand
    register = (move & 7) << 3
    relative = bytes((0x48 | high_register, opcode, register | 5))
    content[start : start + 10] = relative + bytes(4) + NO_OPERATION


def _array_sections(arrays: Sequence[Bytes], before: int) -> Iterator[LinkedSection]:
    """Yields the section of arrays, which gets the index ``before``, and the section of pointers to them."""
    content: list[Bytes] = []
    starts = []
    size = 0
    for array in arrays:
        padding = bytes(-len(array) % ALIGNMENT_BYTES)
        content += [array, padding]
        starts.append(size)
        size += len(array) + len(padding)
    # after all else, so that it may be of any size
    yield LinkedSection(".lrodata", LOADED | LARGE, ALIGNMENT_BYTES, content)
    pointers = tuple(
        LinkedRelocation(8 * index, ADDRESS, before, start) for index, start in enumerate(starts)
    )
    yield LinkedSection(".data.rel.ro", LOADED | WRITTEN, 8, [bytes(8 * len(arrays))], pointers)


def _written(sections: Sequence[LinkedSection], symbols: Sequence[LinkedSymbol]) -> bytes:
    """Returns an object file: header, contents, relocations, symbols, names, and the table of sections."""
    related = [number for number, section in enumerate(sections, start=1) if section.relocations]
    table_number = len(sections) + len(related) + 1
    file = _File()
    table = _SymbolTable()
    for index, section in enumerate(sections):
        file.add(section.name, CONTENT, section.flags, section.content, section.alignment)
        table.add("", OF_SECTION, 0, 1 + index, 0)
    first_global = len(table.entries)
    for symbol in symbols:
        table.add(symbol.name, GLOBAL, HIDDEN, 1 + symbol.section, symbol.offset)
    for number in related:
        section = sections[number - 1]
        packed = list(map(table.packed, section.relocations))
        links = SectionLinks(table_number, number, RELOCATION.size)
        file.add(f".rela{section.name}", RELOCATIONS, LINKED, packed, 8, links)
    file.add(
        ".symtab",
        SYMBOL_TABLE,
        0,
        table.entries,
        8,
        SectionLinks(table_number + 1, first_global, SYMBOL.size),
    )
    file.add(".strtab", STRINGS, 0, [table.names.content], 1)
    file.add(".note.GNU-stack", CONTENT, 0, [], 1)  # no code runs on the stack
    return file.content()


class _Names:
    """A table of names of an object file: each ends with a zero byte, and the first is empty."""

    def __init__(self) -> None:
        self.content = b"\0"

    def add(self, name: str) -> int:
        """Adds ``name`` to the end of the table; returns its offset there. Adds nothing for "": returns 0."""
        if not name:
            return 0
        start = len(self.content)
        self.content += name.encode() + b"\0"
        return start


class _SymbolTable:
    """The entries of a symbol table: an empty one, sections, defined symbols, functions of other files."""

    def __init__(self) -> None:
        self.names = _Names()
        self.entries = [bytes(SYMBOL.size)]
        self._outside: dict[str, int] = {}

    def add(self, name: str, info: int, visibility: int, section: int, offset: int) -> int:
        """Adds an entry to the table, and returns its index."""
        self.entries.append(SYMBOL.pack(self.names.add(name), info, visibility, section, offset, 0))
        return len(self.entries) - 1

    def packed(self, relocation: LinkedRelocation) -> bytes:
        """Returns a relocation in the form of an ELF file; adds an entry for a function of another file."""
        number = self._number(relocation.target)
        return RELOCATION.pack(relocation.offset, number << 32 | relocation.type, relocation.addend)

    def _number(self, target: int | str) -> int:
        if isinstance(target, int):
            return 1 + target
        if target not in self._outside:
            self._outside[target] = self.add(target, GLOBAL, 0, 0, 0)
        return self._outside[target]


@dataclass(frozen=True)
class SectionLinks:
    """Fields of an ELF section header that depend on its type: sh_link, sh_info, sh_entsize."""

    link: int = 0
    info: int = 0
    entry_bytes: int = 0


NO_LINKS = SectionLinks()


class _File:
    """The sections of an object file, in the order of their numbers, which begin at 1."""

    def __init__(self) -> None:
        self._names = _Names()
        self._headers = [bytes(SECTION.size)]
        self._content: list[Bytes] = []
        self._size = HEADER.size

    def add(
        self,
        name: str,
        type_: int,
        flags: int,
        content: Sequence[Bytes],
        alignment: int,
        links: SectionLinks = NO_LINKS,
    ) -> None:
        self._pad(alignment)
        start = self._size
        self._content += content
        self._size += sum(map(len, content))
        fields = (type_, flags, 0, start, self._size - start, links.link, links.info, alignment)
        self._headers.append(SECTION.pack(self._names.add(name), *fields, links.entry_bytes))

    def content(self) -> bytes:
        """Returns the bytes of the file, after adding the table with the names of the sections."""
        name = self._names.add(".shstrtab")
        names = self._names.content
        start = self._size
        self._content.append(names)
        self._size += len(names)
        self._headers.append(SECTION.pack(name, STRINGS, 0, 0, start, len(names), 0, 0, 1, 0))
        self._pad(8)
        sections = len(self._headers)
        header = HEADER.pack(
            HEADER_MAGIC + b"\x01" + bytes(9),  # the version
            *(RELOCATABLE, MACHINES[own_architecture().name], 1, 0, 0, self._size, 0),
            *(HEADER.size, 0, 0, SECTION.size, sections, sections - 1),
        )
        return b"".join((header, *self._content, *self._headers))

    def _pad(self, alignment: int) -> None:
        padding = bytes(-self._size % alignment)
        self._content.append(padding)
        self._size += len(padding)
