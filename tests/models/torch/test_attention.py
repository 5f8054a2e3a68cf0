"""A key that a causal mask hides reaches no row before it, whatever the key is: NaN, infinity, too large."""

from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.fusions import TEMPORARY
from tuner.models.execution import host_function
from tuner.models.fusions.pipeline import FormedProgram, fuse_program

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from tests.models.exports import export  # noqa: E402 - after the skip
from tuner.models.torch.attention import LONG  # noqa: E402

attention = torch.nn.functional.scaled_dot_product_attention
flash_attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001 - torch's only name
WIDTH = 8
HEADS = 2
HIDDEN = {"NaN": torch.nan, "infinity": torch.inf, "-infinity": -torch.inf, "overflow": 1e38}
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-5}  # others are rounded to a few digits


def attentions(query: Any, key: Any, value: Any) -> tuple[Any, ...]:
    """Returns causal attentions: of each type, with grouped heads, more or fewer keys, another scale."""
    grouped = torch.cat([query, -query], 1)
    few = query.shape[-2] // 2
    wide = (query.double(), key.double(), value.double())
    return (
        attention(query, key, value, is_causal=True),
        attention(query[0], key[0], value[0], is_causal=True, scale=-0.5),
        attention(grouped, key, value, is_causal=True, enable_gqa=True),
        attention(query[..., :few, :], key, value, is_causal=True),
        flash_attention(query, key, value, is_causal=True)[0],
        attention(*wide, is_causal=True),
        attention(query.bfloat16(), key.bfloat16(), value.bfloat16(), is_causal=True),
        attention(query.half(), key.half(), value.half(), is_causal=True),
    )


@pytest.mark.parametrize("length", [20, *(pytest.param(size, marks=pytest.mark.slow) for size in (160, 600))])
def test_a_hidden_key_reaches_no_row_before_it(length: int) -> None:
    """80 and more keys have a schedule that leaves out what the mask hides."""
    rng = torch.Generator().manual_seed(0)
    shape = (1, HEADS, length, WIDTH)
    query, key, value = (torch.randn(shape, generator=rng) for _ in range(3))
    program = _compiled(query, key, value)
    last = length - 1
    large = 10 * query
    expected = attentions(large, key, value)
    for hidden in HIDDEN.values():
        changed = key.clone()
        changed[..., last, :] = hidden
        found = program(*map(export.array_of, (large, changed, value)))
        for number, (result, of_key) in enumerate(zip(found, expected, strict=True)):
            wanted = export.array_of(of_key)[..., :last, :].astype(np.float64)
            rows = np.asarray(result)[..., :last, :].astype(np.float64)
            limit = LIMITS.get(of_key.dtype, 0.03)
            np.testing.assert_allclose(rows, wanted, limit, limit, err_msg=f"attention {number}, {hidden}")


def test_attention_without_a_causal_mask_adds_its_mask() -> None:
    """A mask of numbers is added to NaN, as PyTorch adds it."""
    query, key, value = (torch.randn(1, 1, 6, WIDTH) for _ in range(3))
    key[..., 5, :] = torch.nan
    mask = torch.full((6, 6), -torch.inf).triu(1)
    masked = export.Function(lambda q, k, v: attention(q, k, v, attn_mask=mask))
    text = export.exported_text(masked, (query, key, value))
    found = host_function(compiler_of(TargetName("cpu")).compile(text, as_fusions=True))
    assert np.isnan(found(*map(export.array_of, (query, key, value)))).all()
    assert torch.isnan(masked(query, key, value)).all()


def _compiled(*inputs: Any) -> Any:
    text = export.exported_text(export.Function(attentions), inputs)
    return host_function(compiler_of(TargetName("cpu")).compile(text, as_fusions=True))


def few_queries(query: Any, key: Any, value: Any, mask: Any, is_seen: Any) -> tuple[Any, ...]:
    """Returns attentions of few queries per head: masks of both kinds, grouped heads, another scale."""
    grouped = torch.cat([query, -query, 2 * query], 1)
    return (
        attention(query, key, value),
        attention(query, key, value, mask, scale=-0.5),
        attention(query, key, value, is_seen),
        attention(grouped, key, value[..., :3], mask[:, :1], enable_gqa=True),
        flash_attention(query, key, value, attn_mask=mask)[0],
        attention(query.double(), key.double(), value.double()),
        attention(query.bfloat16(), key.bfloat16(), value.bfloat16(), is_seen),
        attention(query.half(), key.half(), value.half()),
    )


@pytest.mark.parametrize(("queries", "length"), [(1, 37), (4, 37), (1, 1)])
def test_few_queries_read_keys_as_they_lie(queries: int, length: int) -> None:
    rng = torch.Generator().manual_seed(0)
    query = 3 * torch.randn(2, HEADS, queries, WIDTH, generator=rng)
    key, value = (torch.randn(2, HEADS, length, WIDTH, generator=rng) for _ in range(2))
    mask = torch.randn(1, HEADS, queries, length, generator=rng)
    is_seen = torch.arange(length).unsqueeze(0) % 3 == 0
    given = (query, key, value, mask, is_seen)
    text = export.exported_text(export.Function(few_queries), given)
    assert f"x{WIDTH}x{length}x" not in text.replace(f"x{HEADS}x{length}x", "")  # no transposed keys
    compiled = compiler_of(TargetName("cpu")).compile(text, as_fusions=True)
    found = host_function(compiled)(*map(export.array_of, given))
    for number, (result, expected) in enumerate(zip(found, few_queries(*given), strict=True)):
        wanted = export.array_of(expected).astype(np.float64)
        limit = LIMITS.get(expected.dtype, 2e-2)
        np.testing.assert_allclose(
            np.asarray(result).astype(np.float64), wanted, limit, limit, err_msg=str(number)
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_few_queries_of_a_long_cache_make_no_wide_copy_of_narrow_values(dtype: Any) -> None:
    rng = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 1, WIDTH, generator=rng).to(dtype)
    key, value = (torch.randn(1, 2, LONG, WIDTH, generator=rng).to(dtype) for _ in range(2))
    given = (query, key, value, torch.arange(LONG).view(1, 1, 1, -1) < LONG - 5)
    grouped = export.Function(lambda q, k, v, mask: attention(q, k, v, attn_mask=mask, enable_gqa=True))
    text = export.exported_text(grouped, given)
    formed = fuse_program(text)
    assert isinstance(formed, FormedProgram)
    widest_bytes = max(buffer.type.bytes for buffer in formed.program.buffers if buffer.owner == TEMPORARY)
    assert widest_bytes < 4 * value.numel()
    compiled = compiler_of(TargetName("cpu")).compile(text, as_fusions=True)
    found = host_function(compiled)(*map(export.array_of, given))
    wanted = export.array_of(grouped(*given)).astype(np.float64)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), wanted, 2e-2, 2e-3)
