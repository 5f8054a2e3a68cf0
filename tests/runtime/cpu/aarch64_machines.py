"""AArch64 processors in the text of /proc/cpuinfo: Neoverse N1, V1, V2, and a guest on an Apple machine."""

from dataclasses import dataclass

BASE = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm"
V1_ON = "jscvt fcma lrcpc dcpop sha3 sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs"


@dataclass(frozen=True)
class Aarch64Machine:
    """A processor: the numbers and features that Linux prints for each of its cores."""

    implementer: str
    part: str
    variant: str
    revision: int
    bogomips: str
    features: str
    named: str  # the name that tuner gives it
    words: str  # instruction sets in its class's name

    def cpuinfo(self, cores: int = 2) -> str:
        """Returns the text of /proc/cpuinfo."""
        return "".join(
            f"processor\t: {core}\nBogoMIPS\t: {self.bogomips}\nFeatures\t: {self.features}\n"
            f"CPU implementer\t: {self.implementer}\nCPU architecture: 8\nCPU variant\t: {self.variant}\n"
            f"CPU part\t: {self.part}\nCPU revision\t: {self.revision}\n\n"
            for core in range(cores)
        )


N1 = Aarch64Machine(
    *("0x41", "0xd0c", "0x3", 1, "243.75"),
    f"{BASE} lrcpc dcpop asimddp ssbs",
    *("Neoverse N1", "neon dotprod"),
)
V1 = Aarch64Machine(
    *("0x41", "0xd40", "0x1", 1, "2100.00"),
    f"{BASE} {V1_ON} paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng",
    *("Neoverse V1", "neon dotprod i8mm bf16"),
)
V2 = Aarch64Machine(
    *("0x41", "0xd4f", "0x0", 0, "2000.00"),
    f"{BASE} {V1_ON} sb dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svebf16"
    " i8mm bf16 dgh bti",
    *("Neoverse V2", "neon dotprod i8mm bf16"),
)
APPLE = Aarch64Machine(
    *("0x61", "0x000", "0x0", 0, "48.00"),
    f"{BASE} jscvt fcma lrcpc dcpop sha3 asimddp sha512 asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg"
    " dcpodp flagm2 frint",
    *("Apple", "neon dotprod"),
)
AARCH64_MACHINES = (N1, V1, V2, APPLE)
