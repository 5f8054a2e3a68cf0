"""The machine code of a folder through nvdisasm: every cubin is decoded, and has the products meant.

nvdisasm takes longer to start than to decode a kernel, so the code of all cubins is decoded in one call, as
one text without sections.
"""

import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu_check.checks import CheckOutcome, evaluated, skipped
from benchmarks.gpu_visit.code_folder import CodeEntry, CodeFolder
from tuner.gpu.target.compiler import locate

INSTRUCTION_BYTES = 16
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", re.MULTILINE)
TIMEOUT_S = 120.0
# The instructions of which one multiplies, by strategy; micro-kernels are looked at where they are compiled
PRODUCTS = {
    "matmul_gpu_wgmma": {"HGMMA", "QGMMA", "IGMMA"},
    "matmul_gpu_mma_sync": {"HMMA", "QMMA", "IMMA"},
    "matmul_gpu_simt": {"FFMA", "DFMA", "IMAD", "IDP"},
    "matmul_gpu_naive": {"FFMA", "DFMA", "IMAD", "IDP"},
}
# Fields of an ELF file of 64 bits: the table of sections and its size, then of one section's header
TABLE = struct.Struct("<40xQ10xHHH")
SECTION = struct.Struct("<I20xQQ24x")  # name, offset, size
TEXT = b".text."


def text_of(cubin: bytes) -> bytes:
    """Returns the machine code of all kernels of a cubin."""
    table, header_bytes, count, names = TABLE.unpack_from(cubin)
    headers = [SECTION.unpack_from(cubin, table + header_bytes * number) for number in range(count)]
    start = headers[names][1]
    code = [
        cubin[offset : offset + size]
        for name, offset, size in headers
        if cubin.startswith(TEXT, start + name)
    ]
    return b"".join(code)


def mnemonics(code: bytes, chip: str, nvdisasm: Path) -> list[str]:
    """Returns the mnemonic of each instruction. Raises CalledProcessError, TimeoutExpired."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        command = [str(nvdisasm), "--binary", chip.replace("sm_", "SM"), "--no-dataflow", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return INSTRUCTION.findall(done.stdout)


def disassembled(code: CodeFolder) -> CheckOutcome:
    """Loads every cubin through nvdisasm; skipped where that is not installed."""
    tool = locate("nvdisasm")
    if tool is None:
        return skipped("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    entries = {entry.code: entry for entry in code.manifest.entries if entry.code}
    texts = [text_of(code.program(entry).binary) for entry in entries.values()]
    found = mnemonics(b"".join(texts), code.manifest.chip, tool.path)
    wrong = list(_faults(tuple(entries.values()), texts, found))
    words = "; ".join(wrong[:3]) or f"{len(entries)} cubins, {len(found)} instructions"
    return evaluated(not wrong, words, cubins=len(entries), instructions=len(found), nvdisasm=tool.origin)


def _faults(entries: tuple[CodeEntry, ...], texts: list[bytes], found: list[str]) -> Iterator[str]:
    total = sum(len(text) for text in texts) // INSTRUCTION_BYTES
    if len(found) != total:
        yield f"{len(found)} of {total} instructions were decoded"
        return
    start = 0
    for entry, text in zip(entries, texts, strict=True):
        end = start + len(text) // INSTRUCTION_BYTES
        counts = Counter(found[start:end])
        start = end
        wanted = PRODUCTS.get(entry.candidate.strategy, set()) if entry.candidate is not None else set()
        if not counts or (wanted and not wanted & counts.keys()):
            yield f"{entry.name}: none of {', '.join(sorted(wanted))} in {sum(counts.values())} instructions"
