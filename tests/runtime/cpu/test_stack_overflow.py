"""A stack overflow of compiled code is said to be one; another fault is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.texts import text_beside

pytestmark = pytest.mark.mlir
FAULTS = text_beside(__file__, "FAULTS")
CHILD = """
import sys
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.runtime.cpu.stack_overflow import report_stack_overflows
from tuner.runtime.cpu.thread_team import ThreadTeam

report_stack_overflows()
module = JittedModule(sys.stdin.read(), ("fault",))
code = module.addresses["fault"]
*numbers, thread = map(int, sys.argv[1:])
fine, faulty = PackedArguments(16, 2, 0), PackedArguments(*numbers)
calls = ((code, fine.address), (code, faulty.address))
ThreadTeam(2).repeat(calls if thread else tuple(reversed(calls)), 1)
print("fine")
"""
EMULATORS_LINE = re.compile(r"^qemu: .*\n", re.MULTILINE)  # of make test-aarch64
SAID = "stack overflow: the kernel needs more than the 8 MiB of its thread's stack\n"


def said_by(*numbers: int) -> tuple[str, str]:
    """Returns what a child prints to stdout and to stderr: bytes, times, address, number of the thread."""
    command = ["bash", "-c", 'ulimit -s 8192 -c 0; exec "$@"', "child", sys.executable, "-c", CHILD]
    done = subprocess.run(
        [*command, *map(str, numbers)],
        input=FAULTS,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == (0 if done.stdout else -11)
    return done.stdout, EMULATORS_LINE.sub("", done.stderr)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((4096, 100, 0), ("fine\n", "")),
        ((64, 1_000_000, 0), ("", SAID)),
        ((5_000_000, 2, 0), ("", SAID)),
        ((1 << 33, 1, 0), ("", SAID)),
        ((0, 0, 8), ("", "")),
        ((0, 0, 123_456_789_123), ("", "")),
    ],
)
@pytest.mark.parametrize("thread", [0, 1])
def test_a_stack_overflow_is_told_apart_from_other_faults(
    numbers: tuple[int, int, int], expected: tuple[str, str], thread: int
) -> None:
    assert said_by(*numbers, thread) == expected
