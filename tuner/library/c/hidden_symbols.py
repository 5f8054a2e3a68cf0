"""Hides the symbols of an object file from programs that load a shared object made of it.

The JIT adds a wrapper ``_mlir_<name>`` to each function. Hidden, neither the wrappers nor the kernels are
part of the interface of a shared object; code that is linked with them still finds them. Format: System V
ABI, ELF-64.
"""

import struct

ELF_64_LITTLE = b"\x7fELF\x02\x01"
SECTION_TABLE_AT, SECTION_COUNT_AT = 0x28, 0x3C  # e_shoff, e_shnum
SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
SYMBOL_TABLE = 2  # SHT_SYMTAB
OTHER_AT = 5  # offset of st_other in a symbol
LOCAL, UNDEFINED, HIDDEN = 0, 0, 2  # STB_LOCAL, SHN_UNDEF, STV_HIDDEN


def with_hidden_symbols(code: bytes) -> bytes:
    """Returns an ELF-64 little-endian object with defined symbols "hidden"; raises ValueError."""
    if not code.startswith(ELF_64_LITTLE):
        raise ValueError("no ELF-64 object file in little-endian order")
    changed = bytearray(code)
    (first,) = struct.unpack_from("<Q", code, SECTION_TABLE_AT)
    (count,) = struct.unpack_from("<H", code, SECTION_COUNT_AT)
    for number in range(count):
        _, type_, _, _, start, size, *_ = SECTION.unpack_from(code, first + number * SECTION.size)
        for at in range(start, start + size, SYMBOL.size) if type_ == SYMBOL_TABLE else ():
            _, info, _, section, _, _ = SYMBOL.unpack_from(code, at)
            if info >> 4 != LOCAL and section != UNDEFINED:
                changed[at + OTHER_AT] = HIDDEN
    return bytes(changed)
