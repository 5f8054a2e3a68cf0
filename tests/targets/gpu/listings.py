"""What ``nvdisasm -c -hex`` prints of kernels that are written by hand."""

from dataclasses import dataclass

from tuner.targets.gpu.sass import NO_BARRIER, Kernel, read_kernels


@dataclass(frozen=True)
class Line:
    """An instruction and its control code."""

    text: str
    stall_cycles: int = 1
    sets: int = NO_BARRIER
    waits: tuple[int, ...] = ()

    @property
    def word(self) -> str:
        """Returns the high word."""
        mask = sum(1 << number for number in self.waits)
        return f"{self.stall_cycles << 41 | self.sets << 46 | mask << 52 | 0b111:016x}"


def listing(*lines: Line | str) -> str:
    """Returns the text of a kernel: labels, and instructions."""
    text, address = [".section .text.k", ".text.k:"], 0
    for line in lines:
        if isinstance(line, str):
            text.append(f"{line}:")
        else:
            text.append(f"        /*{address:04x}*/          {line.text} ;   /* 0x0123456789abcdef */")
            text.append(f"                                   /* 0x{line.word} */")
            address += 16
    return "\n".join(text)


def kernel_of(*lines: Line | str) -> Kernel:
    """Returns the kernel."""
    (kernel,) = read_kernels(listing(*lines))
    return kernel


FFMA, LDS = Line("FFMA R0, R1, R2, R0", 2), Line("LDS.128 R4, [R8]", 1, sets=0)


def loop(label: str, *body: Line | str) -> tuple[Line | str, ...]:
    """Returns a loop around lines; the branch back is one more instruction."""
    return (label, *body, Line(f"@P0 BRA `({label})", 5))


NESTED = kernel_of(
    Line("MOV R1, c[0x0][0x28]"),
    *loop(".L_x_0", LDS, *loop(".L_x_1", FFMA, FFMA), FFMA),
    FFMA,
    Line("EXIT", 5),
    *loop(".L_x_2"),
)
