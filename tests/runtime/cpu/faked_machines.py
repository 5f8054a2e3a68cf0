"""Processors as Linux reports them, put in place of this machine's."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tuner.runtime.cpu import host

AVX2 = "fma avx2"
AVX512 = f"{AVX2} avx512f avx512dq avx512bw avx512vl"
TILES = "amx_tile amx_bf16 amx_int8"


@dataclass(frozen=True)
class FakedMachine:
    """A processor: its flags in /proc/cpuinfo, and whether the operating system lets processes use tiles."""

    processor: str  # model name
    model: str  # "6/143": family and model
    flags: str
    grants_tiles: bool = True

    @property
    def cpuinfo(self) -> str:
        """Returns the text of /proc/cpuinfo for one core."""
        family, number = self.model.split("/")
        fields = {"cpu family": family, "model": number, "model name": self.processor, "flags": self.flags}
        return "".join(f"{name}\t: {value}\n" for name, value in fields.items())


FAKED = (
    FakedMachine("Pentium G4400", "6/94", "sse4_2"),
    FakedMachine("Xeon E5-2690", "6/45", "avx"),
    FakedMachine("Xeon E5-2680 v3", "6/63", AVX2),
    FakedMachine("EPYC 7763", "25/1", AVX2),
    FakedMachine("Core i9-12900K", "6/151", f"{AVX2} avx_vnni"),
    FakedMachine("Xeon 6780E", "6/175", f"{AVX2} avx_vnni avx_vnni_int8"),
    FakedMachine("Xeon Phi 7250", "6/87", f"{AVX2} avx512f avx512cd avx512er avx512pf"),
    FakedMachine("Xeon Platinum 8180", "6/85", AVX512),
    FakedMachine("Xeon Platinum 8280", "6/85", f"{AVX512} avx512_vnni"),
    FakedMachine("Xeon Platinum 8380H", "6/85", f"{AVX512} avx512_vnni avx512_bf16"),
    FakedMachine("Xeon Platinum 8380", "6/106", f"{AVX512} avx512_vnni"),
    FakedMachine("EPYC 9654", "25/17", f"{AVX512} avx512_vnni avx512_bf16"),
    FakedMachine("EPYC 9755", "26/2", f"{AVX512} avx512_vnni avx512_bf16 avx_vnni"),
    FakedMachine("Xeon Platinum 8480+", "6/143", f"{AVX512} avx512_vnni avx512_bf16 {TILES}"),
    FakedMachine("Xeon Platinum 8480+", "6/143", f"{AVX512} avx512_vnni avx512_bf16 {TILES}", False),
    FakedMachine("Xeon Platinum 8480+", "6/143", f"{AVX512} avx512_vnni avx512_bf16"),
    FakedMachine("Xeon Platinum 8480+", "6/143", f"{AVX512} {TILES}"),
    FakedMachine("Xeon Platinum 8481C", "6/143", f"{AVX512} avx512_vnni amx_tile amx_int8"),
    FakedMachine("Xeon Platinum 8481C", "6/143", f"{AVX512} avx512_vnni amx_tile amx_bf16"),
    FakedMachine("Xeon 6980P", "6/173", f"{AVX512} avx512_vnni avx512_bf16 avx_vnni {TILES} amx_fp16"),
)


def fake(machine: FakedMachine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a processor in place of this machine's until the test ends; caches are unknown."""
    (folder / "cpuinfo").write_text(machine.cpuinfo)
    monkeypatch.delenv(host.LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(host, "CPUINFO", folder / "cpuinfo")
    monkeypatch.setattr(host, "SYSTEM_PROCESSORS", folder / "none")
    monkeypatch.setattr(host, "may_use_tiles", lambda: machine.grants_tiles)
