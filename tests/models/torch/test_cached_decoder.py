"""A small decoder with a static and a sliding cache: its tokens are eager mode's, here, by numpy and in C."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.library.c.c_programs import NEEDS_CC
from tests.models.test_c_library import OK, Library
from tests.support.architectures import ON_X86_64

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402

PROMPT, NEW = 64, 64
LONGEST = PROMPT + NEW
WINDOW = 48  # less than the prompt
VOCABULARY, HIDDEN, HEADS, KEY_HEADS, WIDTH, FORWARD = 97, 64, 4, 2, 16, 128
BY_NUMPY = """
import sys
for name in ("torch", "torch_mlir", "mlir", "jinja2", "sqlalchemy"):
    sys.modules[name] = None  # cannot be imported
import numpy as np
import tuner
folder, count = sys.argv[1], int(sys.argv[2])
prompt, step = tuner.load(f"{folder}/prompt"), tuner.load(f"{folder}/step")
caches = [np.zeros(type_.shape, np.float32) for type_ in step.code.arguments[2:]]
tokens = np.load(f"{folder}/tokens.npy")
logits = prompt(tokens, np.arange(tokens.shape[1]), *caches)
made = []
for position in range(tokens.shape[1], tokens.shape[1] + count):
    token = logits[:, -1:].argmax(-1)
    made.append(token.item())
    logits = step(token, np.array([position]), *caches)
print(*made)
"""


def rotated(x: Any, positions: Any) -> Any:
    frequencies = 1e4 ** -(torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.outer(positions, frequencies).repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


class Layer(nn.Module):
    """Attention over a cache, as in transformers: of all positions, or of the last WINDOW ones."""

    keys: Any
    values: Any

    def __init__(self, *, is_sliding: bool) -> None:
        super().__init__()
        self.is_sliding = is_sliding
        self.norm = nn.RMSNorm(HIDDEN)
        self.q = nn.Linear(HIDDEN, HEADS * WIDTH, bias=False)
        self.k = nn.Linear(HIDDEN, KEY_HEADS * WIDTH, bias=False)
        self.v = nn.Linear(HIDDEN, KEY_HEADS * WIDTH, bias=False)
        self.o = nn.Linear(HEADS * WIDTH, HIDDEN, bias=False)
        self.forward_norm = nn.RMSNorm(HIDDEN)
        self.gate = nn.Linear(HIDDEN, FORWARD, bias=False)
        self.up = nn.Linear(HIDDEN, FORWARD, bias=False)
        self.down = nn.Linear(FORWARD, HIDDEN, bias=False)
        length = WINDOW if is_sliding else LONGEST
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, KEY_HEADS, length, WIDTH), persistent=False)

    def written(self, cache: Any, new: Any, positions: Any) -> Any:
        """Writes ``new`` into a cache in place; returns what the attention reads."""
        if not self.is_sliding:
            cache.index_copy_(2, positions, new)
            return cache
        if new.shape[2] > WINDOW:
            cache.copy_(new[:, :, -WINDOW:])
            return new
        moved = cache.roll(-1, 2)
        moved[:, :, torch.tensor([-1])] = new
        cache.copy_(moved)
        return cache

    def forward(self, x: Any, positions: Any) -> Any:
        normed = self.norm(x)
        q, k, v = (
            linear(normed).unflatten(-1, (-1, WIDTH)).transpose(1, 2) for linear in (self.q, self.k, self.v)
        )
        keys = self.written(self.keys, rotated(k, positions), positions)
        values = self.written(self.values, v, positions)
        if self.is_sliding and keys.shape[2] == WINDOW:
            places = positions[-1:] + torch.arange(1 - WINDOW, 1)
        else:
            places = torch.arange(keys.shape[2])
        is_seen = places <= positions[:, None]
        if self.is_sliding:
            is_seen = is_seen & (places > positions[:, None] - WINDOW)
        attended = nn.functional.scaled_dot_product_attention(
            rotated(q, positions), keys, values, attn_mask=is_seen, enable_gqa=True
        )
        x = x + self.o(attended.transpose(1, 2).flatten(2))
        normed = self.forward_norm(x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer(is_sliding=is_sliding) for is_sliding in (False, True))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens: Any, positions: Any) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, positions)
        return self.head(self.norm(x))


TOKENS = torch.arange(PROMPT).mul(37).remainder(VOCABULARY)[None]


@pytest.fixture(scope="module")
def module() -> Decoder:
    torch.manual_seed(0)
    decoder = Decoder()
    decoder.eval()
    return decoder


def generated(prompt: Any, step: Any) -> tuple[list[int], list[Any]]:
    """Returns the tokens that follow TOKENS, and the logits that each was chosen by."""
    made = []
    logits = prompt(TOKENS, torch.arange(PROMPT))[:, -1:]
    every = [logits.clone()]
    for position in range(PROMPT, LONGEST):
        token = logits.argmax(-1)
        made.append(int(token))
        logits = step(token, torch.tensor([position]))
        every.append(logits.clone())
    return made, every


@pytest.fixture(scope="module")
def expected(module: Decoder) -> tuple[list[int], list[Any], dict[str, Any]]:
    eager = copy.deepcopy(module)
    with torch.no_grad():
        made, logits = generated(eager, eager)
    return made, logits, dict(eager.named_buffers())


@pytest.fixture(scope="module")
def programs(module: Decoder) -> tuple[Any, Any]:
    prompt = tuner.torch.compile(module, (TOKENS, torch.arange(PROMPT)))
    step = tuner.torch.compile(module, (TOKENS[:, :1], torch.tensor([PROMPT])))
    return prompt, step


def require_same(found: tuple[list[int], list[Any]], expected: tuple[list[int], list[Any], Any]) -> None:
    for one, other in zip(found[1], expected[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert found[0] == expected[0]


def test_prompt_and_tokens_are_those_of_eager_mode(
    module: Decoder, programs: tuple[Any, Any], expected: tuple[list[int], list[Any], dict[str, Any]]
) -> None:
    require_same(generated(*programs), expected)
    for name, buffer in module.named_buffers():
        torch.testing.assert_close(buffer, expected[2][name], rtol=1e-4, atol=1e-4)


def test_each_is_one_program_that_writes_its_caches_and_shares_packed_weights(
    programs: tuple[Any, Any],
) -> None:
    prompt, step = (program.function for program in programs)
    for function in (prompt, step):
        assert isinstance(function, FusedFunction)
        assert function.code.changed == (2, 3, 4, 5)
        writes = [fusion for fusion in function.code.fusions if fusion.ops == ("tensor.scatter",)]
        assert len(writes) >= 2  # rows of the static cache's keys and values
        new_bytes = function.code.arguments[1].bytes // 8 * KEY_HEADS * WIDTH * 4
        assert all(write.moved_bytes < 3 * new_bytes for write in writes)
    of_step = {id(weight) for weight in step.weights}
    shared = [weight for weight in prompt.weights if id(weight) in of_step]
    assert sum(map(len, shared)) >= 0.9 * sum(map(len, step.weights))


def test_numpy_alone_gives_the_same_tokens(
    programs: tuple[Any, Any], expected: tuple[list[int], list[Any], dict[str, Any]], tmp_path: Path
) -> None:
    for program, name in zip(programs, ("prompt", "step"), strict=True):
        program.export(tmp_path / name)
    np.save(tmp_path / "tokens.npy", TOKENS.numpy())
    command = [sys.executable, "-c", BY_NUMPY, str(tmp_path), str(NEW)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert list(map(int, printed.split())) == expected[0]


@NEEDS_CC
@ON_X86_64
def test_c_gives_the_same_tokens(
    programs: tuple[Any, Any], expected: tuple[list[int], list[Any], dict[str, Any]], tmp_path: Path
) -> None:
    libraries = []
    for program, name in zip(programs, ("prompt", "step"), strict=True):
        (tmp_path / name).mkdir()
        libraries.append(Library(tmp_path / name, program.function))
    caches = [np.zeros(type_.shape, np.float32) for type_ in programs[1].function.code.arguments[2:]]

    def called(library: Library) -> Any:
        def call(tokens: Any, positions: Any) -> Any:
            logits = np.empty((1, tokens.shape[1], VOCABULARY), np.float32)
            assert library.run((tokens.numpy(), positions.numpy(), *caches), [logits]) == OK
            return torch.from_numpy(logits)

        return call

    require_same(generated(*map(called, libraries)), expected)


def test_the_back_end_gives_the_same_tokens_in_one_program_each(
    module: Decoder, expected: tuple[list[int], list[Any], dict[str, Any]]
) -> None:
    own = copy.deepcopy(module)
    for buffer in own.buffers():
        buffer.zero_()
    compiled: Any = torch.compile(own, backend="tuner")
    tuner.torch.graph_counts(reset=True)
    with torch.no_grad():
        require_same(generated(compiled, compiled), expected)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch) == (2, 0, ())
