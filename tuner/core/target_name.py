"""Which target is meant: a kind of machine, and which one of it."""

from dataclasses import dataclass

CUDA = "cuda"
SIMULATOR = "simulator"  # of the same PTX as CUDA's
REPLAY = "replay"  # answers from a recording; nothing is compiled or run


@dataclass(frozen=True)
class TargetName:
    """A target as records and the command line spell it: ``cpu``, ``simulator:sm_90``, ``replay:gemm``."""

    kind: str  # a name of ``tuner.tuning.parts.kinds.KINDS``, or of what has no machine
    detail: str = ""  # of a GPU the chip, of a replay the recording; "" where the kind has none

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Returns the form that is stored."""
        return f"{self.kind}:{self.detail}" if self.detail else self.kind

    @property
    def has_machine(self) -> bool:
        """Returns True if its outcomes were measured; False: a recording gave them, and nothing ran."""
        return self.kind != REPLAY

    @property
    def is_on_gpu(self) -> bool:
        """Tells whether it runs on a GPU of the machine."""
        return self.kind == CUDA

    def is_of(self, kind: str) -> bool:
        """Tells whether it is of a kind, given by its name."""
        return self.kind == kind

    @classmethod
    def parse(cls, text: str) -> "TargetName":
        """Reads ``kind`` or ``kind:detail``. Whether there is such a one is not looked at."""
        kind, _, detail = text.partition(":")
        return cls(kind, detail)
