"""Weights of a module are in memory once, and once packed: children get none, no copy of all is made."""

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402
from tuner.programs.compile import CHILDREN  # noqa: E402
from tuner.runtime.workers import child_process, protocol  # noqa: E402

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code
MIB = 1 << 20
SIZE, LAYERS = 2560, 8  # 200 MiB of weights
SLACK_BYTES = 64 * MIB  # of code and allocators


def mlp(size: int, layers: int) -> Any:
    return torch.nn.Sequential(*(torch.nn.Linear(size, size, bias=False) for _ in range(layers))).eval()


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024  # type: ignore[index]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gives the sizes of all that goes from and to children."""
    sizes: list[int] = []
    encode, add = protocol.encode, protocol.Inbox.add

    def counted(message: protocol.Message) -> bytes:
        sizes.append(len(encode(message)))
        return encode(message)

    def counted_answer(inbox: protocol.Inbox, chunk: bytes) -> None:
        sizes.append(len(chunk))
        add(inbox, chunk)

    monkeypatch.setattr(child_process, "encode", counted)
    monkeypatch.setattr(protocol.Inbox, "add", counted_answer)
    return sizes


def test_weights_are_copied_once_when_they_are_packed(
    sent: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is compiled yet
    tuner.torch.compile(mlp(64, 2), (torch.ones(4, 64),))  # imports, starts the child
    module, x = mlp(SIZE, LAYERS), torch.rand(2, SIZE)
    expected = module(x)
    largest = SIZE * SIZE * 4
    sent.clear()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = peak_bytes()
    program = tuner.torch.compile(module, (x,))
    grown = peak_bytes() - before
    assert sum(sent) < MIB
    assert LAYERS * largest < grown < (LAYERS + 2) * largest + SLACK_BYTES
    torch.testing.assert_close(program(x), expected, rtol=1e-4, atol=1e-5)
    child = CHILDREN.of_this_thread().first.child
    assert child is not None
    assert child.resident_bytes < LAYERS * largest + 2 * SLACK_BYTES  # the compilers
