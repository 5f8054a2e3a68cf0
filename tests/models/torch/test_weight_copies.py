"""Weights of a module are in memory once, and once packed: children get none, no copy of all is made."""

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tests.texts import text_beside  # noqa: E402
from tuner.models.compile import CHILDREN  # noqa: E402
from tuner.runtime.workers import child_process, protocol  # noqa: E402

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code
MIB = 1 << 20
SIZE, LAYERS = 2560, 8  # 200 MiB of weights
SIZES = {"sizes": "1..4"}
SLACK_BYTES = 64 * MIB  # of code and allocators


def mlp(size: int, layers: int) -> Any:
    return nn.Sequential(*(nn.Linear(size, size, bias=False) for _ in range(layers))).eval()


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024  # type: ignore[index]


def in_a_fresh_process(work: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """Calls ``work`` where no other test has run: what they left free would hide a copy or look like one."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work).result()


def compiled_from_here(module: Any, x: Any) -> tuple[Any, int]:
    """Compiles a module; returns the program, and the bytes by which the peak of this process has grown."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = peak_bytes()
    program = tuner.torch.compile(module, (x,))
    return program, peak_bytes() - before


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


def compiled_mlp() -> tuple[int, int]:
    """Returns bytes by which compiling 200 MiB of weights grew the peak here, and what the child holds."""
    tuner.torch.compile(mlp(64, 2), (torch.ones(4, 64),))  # imports, starts the child
    module, x = mlp(SIZE, LAYERS), torch.rand(2, SIZE)
    expected = module(x)
    program, grown = compiled_from_here(module, x)
    torch.testing.assert_close(program(x), expected, rtol=1e-4, atol=1e-5)
    child = CHILDREN.of_this_thread().first.child
    assert child is not None
    return grown, child.resident_bytes


def test_weights_are_copied_once_when_they_are_packed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is compiled yet
    grown, of_child = in_a_fresh_process(compiled_mlp)
    largest = SIZE * SIZE * 4
    assert LAYERS * largest < grown < (LAYERS + 2) * largest + SLACK_BYTES
    assert of_child < LAYERS * largest + 2 * SLACK_BYTES  # the compilers


def test_no_weight_is_sent_to_a_child(
    sent: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module, x = mlp(1024, 2), torch.rand(2, 1024)
    program = tuner.torch.compile(module, (x,))
    assert 0 < sum(sent) < MIB
    torch.testing.assert_close(program(x), module(x), rtol=1e-4, atol=1e-5)


class Nibbles(nn.Module):
    """A product by a weight of 4 bits, in PyTorch's packed form."""

    def __init__(self, size: int, group: int = 128) -> None:
        super().__init__()
        pack = torch.ops.aten._convert_weight_to_int4pack_for_cpu  # noqa: SLF001 - PyTorch's only name
        self.group = group
        self.register_buffer("weight", pack(torch.randint(0, 16, (size, size), dtype=torch.int32), 1))
        self.register_buffer("scales", torch.rand(size // group, size, 2) / size)

    def forward(self, x: Any) -> Any:
        product = torch.ops.aten._weight_int4pack_mm_for_cpu  # noqa: SLF001
        return product(x, self.weight, self.group, self.scales)


def compiled_nibbles() -> tuple[int, int]:
    """Returns bytes by which compiling 12 weights of 4096x4096 in 4 bits grew the peak, and of weights."""
    tuner.torch.compile(Nibbles(256).eval(), (torch.ones(1, 256),))
    module, x = nn.Sequential(*(Nibbles(4096) for _ in range(12))).eval(), torch.rand(1, 4096)
    expected = module(x)
    held = sum(buffer.numel() * buffer.element_size() for buffer in module.buffers())
    program, grown = compiled_from_here(module, x)
    torch.testing.assert_close(program(x), expected, rtol=1e-3, atol=1e-4)
    return grown, held


@pytest.mark.slow
def test_few_bits_are_unpacked_one_weight_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The integers of all weights, as bytes, would be twice as large as what is packed, next to it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    grown, held = in_a_fresh_process(compiled_nibbles)
    assert held * 0.9 < grown < 1.3 * held + SLACK_BYTES


def test_what_is_tuned_is_mapped_by_its_children(
    sent: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module, x = mlp(1024, 1), torch.rand(2, 1024)
    program = tuner.torch.tune(module, (x,), trials=1, baseline="none", db=tmp_path / "results.db")
    assert sum(sent) < MIB
    torch.testing.assert_close(program(x), module(x), rtol=1e-4, atol=1e-5)


def with_data(text: str, weight: Any) -> str:
    data = weight.numpy().tobytes().hex().upper()
    return f'{text}\n{{-#\ndialect_resources: {{ builtin: {{ weight: "0x04000000{data}" }} }}\n#-}}\n'


@pytest.mark.parametrize(
    ("part", "target", "options"),
    [("LOOPS", "cpu", {}), ("PRODUCT", "simulator", {}), ("ROWS", "cpu", SIZES)],
)
def test_programs_are_compiled_without_the_data_of_their_constants(
    part: str,
    target: str,
    options: dict[str, Any],
    sent: list[int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    weight = torch.rand(512, 1024)  # 2 MiB
    program: Any = tuner.compile_program(with_data(text_beside(__file__, part), weight), target, **options)
    if target == "cpu":
        x = torch.rand(2, 512)
        numbers = (1,) if part == "LOOPS" else ()
        found = torch.from_numpy(program(x.numpy(), *numbers))
        torch.testing.assert_close(found, x @ weight, rtol=1e-4, atol=1e-5)
    assert sum(sent) < MIB
