"""Frames of hand-written PTX kernels: parameters, the block's clock, results written per warp."""

from collections.abc import Iterable
from dataclasses import dataclass

HEADER = ".version 8.0\n.target {chip}\n.address_size 64\n"
WARP = 32
NO_CLOCK = "mov.u64 {register}, 0;"  # for the simulator, which has no clock
CLOCK = "mov.u64 {register}, %clock64;"


@dataclass(frozen=True)
class Frame:
    """A kernel's text around its body: the body runs between two readings of the multiprocessor's clock."""

    name: str
    parameters: tuple[str, ...]  # pointers to global memory; the first is where cycles are written
    shared_bytes: int = 0
    maps: tuple[str, ...] = ()  # tensor maps, after the pointers
    has_clock: bool = True

    def text(
        self,
        chip: str,
        declared: Iterable[str],
        before: Iterable[str],
        body: Iterable[str],
        after: Iterable[str],
    ) -> str:
        """Returns the PTX: ``before`` runs untimed, ``after`` may store what ``body`` computed."""
        parameters = [f".param .u64 {name}" for name in self.parameters]
        parameters += [f".param .align 64 .b8 {name}[128]" for name in self.maps]
        clock = CLOCK if self.has_clock else NO_CLOCK
        shared = [".extern .shared .align 1024 .b8 tile[];"] if self.shared_bytes else []
        lines = [
            *(".reg .pred %p<8>;", ".reg .b32 %r<64>;", ".reg .b64 %rd<32>;"),
            *declared,
            *(f"ld.param.u64 %{name}, [{name}];" for name in self.parameters),
            "mov.u32 %thread, %tid.x;",
            *before,
            "bar.sync 0;",
            clock.format(register="%began"),
            *body,
            clock.format(register="%ended"),
            *after,
            *_cycles_stored(self.parameters[0]),
            "ret;",
        ]
        registers = [f".reg .b64 %{name};" for name in (*self.parameters, "began", "ended", "slot")]
        inside = "\n".join(
            f"  {line}" for line in (".reg .b32 %thread, %warp, %block, %lane;", *registers, *lines)
        )
        kernel = f".visible .entry {self.name}({', '.join(parameters)})\n{{\n{inside}\n}}\n"
        return HEADER.format(chip=chip) + "\n".join((*shared, kernel))


def _cycles_stored(pointer: str) -> tuple[str, ...]:
    """Returns lines that store a warp's cycles at its number in the grid, counted through the blocks."""
    return (
        "sub.u64 %ended, %ended, %began;",
        "shr.u32 %warp, %thread, 5;",
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %lane, %ntid.x;",
        "shr.u32 %lane, %lane, 5;",
        "mad.lo.u32 %warp, %block, %lane, %warp;",
        "mul.wide.u32 %slot, %warp, 8;",
        f"add.u64 %slot, %slot, %{pointer};",
        "and.b32 %lane, %thread, 31;",
        "setp.eq.u32 %p7, %lane, 0;",
        "@%p7 st.global.u64 [%slot], %ended;",
    )


def loop(label: str, times: int, body: Iterable[str]) -> tuple[str, ...]:
    """Returns lines that run ``body`` ``times`` times, counted in %loop (to be declared as .u32)."""
    return (
        "mov.u32 %loop, 0;",
        f"{label}:",
        '.pragma "nounroll";',
        *body,
        "add.u32 %loop, %loop, 1;",
        f"setp.lt.u32 %p0, %loop, {times};",
        f"@%p0 bra {label};",
    )


def vector(names: Iterable[str]) -> str:
    """Returns registers as PTX lists them: {%a0, %a1}."""
    return "{" + ", ".join(names) + "}"


def numbered(prefix: str, count: int, start: int = 0) -> tuple[str, ...]:
    """Returns %prefix0, %prefix1, ..."""
    return tuple(f"%{prefix}{number}" for number in range(start, start + count))
