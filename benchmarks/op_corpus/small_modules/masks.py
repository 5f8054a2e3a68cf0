"""Masks of attention and of padding: what is hidden may be NaN, infinite or large, and reaches nothing."""

from benchmarks.op_corpus.small_modules.arguments import INDICES, INF, LARGE, NAN, TRUTHS
from benchmarks.op_corpus.small_modules.module_text import Draft, SmallModule

FLOATS = ("float32", "float32", "float32", "float64", "bfloat16")
# Which key j a query i sees; {n} keys and queries, {w} of a window
MASKS = (
    "torch.ones({n}, {n}, dtype=torch.bool).tril()",
    "torch.ones({n}, {n}, dtype=torch.bool).tril().triu(-{w})",
    "(i[:, None] - i).abs() <= {w}",
    "(i[:, None] >= i) & (i[:, None] - i < {w})",
    "(i < {n} - {w}).expand({n}, {n}) | (i[:, None] == i)",
    "(i[:, None] // {w}) == (i // {w})",
)
# What hides in a score s, by a mask m
HIDING = (
    "s.masked_fill(~m, float('-inf'))",
    "torch.where(m, s, float('-inf'))",
    "torch.where(m, s, torch.finfo(s.dtype).min)",
    "s.masked_fill(~m, -1e4)",
    "s + torch.zeros_like(s).masked_fill(~m, float('-inf'))",
    "s + torch.where(m, 0.0, float('-inf')).to(s.dtype)",
)
# Queries x, keys y and their numbers z
SDPA = (
    "F.scaled_dot_product_attention(x, y, z, attn_mask=m)",
    "F.scaled_dot_product_attention(x, y, z, attn_mask=m, scale=0.5)",
    "F.scaled_dot_product_attention(x, y, z, attn_mask=torch.where(m, 0.0, float('-inf')).to(x.dtype))",
)
CAUSAL = "F.scaled_dot_product_attention(x, y, z, is_causal=True)"
LONG = (80, 130)  # keys: several blocks of an attention that is computed by blocks
# Of numbers x (rows, columns) and a mask y of the same shape or of rows
PADDED = (
    "x.masked_fill(y, 0.0).sum(-1)",
    "torch.where(y, x, 0.0).sum(-1) / y.sum(-1).clamp(min=1)",
    "(x * y).sum(0)",
    "x.masked_fill(~y, float('-inf')).amax(-1)",
    "x.masked_fill(~y, float('-inf')).softmax(-1)",
    "x.masked_fill(~y, float('-inf')).logsumexp(-1)",
    "torch.where(y, x, float('-inf')).log_softmax(-1)",
    "torch.where(y, x, x.new_zeros(())) @ torch.where(y, x, 0.0).T",
    "torch.where(y.any(-1, keepdim=True), x, 0.0).cumsum(0)",
    "(x.masked_fill(~y, 0.0) ** 2).sum(-1).sqrt() / y.sum(-1)",
    "x.masked_fill(y, float('nan')).nansum(-1)",
    "torch.where(y, x, torch.nan).isnan().sum(-1)",
    "x.nan_to_num(0.0, 1.0, -1.0).mean(-1) * y.all(-1)",
    "F.softmax(x.masked_fill(~y, float('-inf')), -1).nan_to_num(0.0)",
    "F.layer_norm(x.masked_fill(~y, 0.0), x.shape[-1:])",
)
SPECIALS = (NAN, INF, LARGE)


def mask(draft: Draft) -> SmallModule:
    """Returns an attention with a mask, or a reduction of what a mask leaves."""
    if draft.rng.random() < 0.4:
        return _padded(draft)
    return _attention(draft)


def _padded(draft: Draft) -> SmallModule:
    rng = draft.rng
    shape = draft.shape(2)
    dtype = rng.choice(FLOATS)
    draft.argument(shape, dtype)
    draft.argument(shape, "bool", TRUTHS)
    draft.lines.append(f"return {rng.choice(PADDED)}")
    return draft.finished(specials=(rng.choice(SPECIALS),), has_truth=True)


def _attention(draft: Draft) -> SmallModule:
    """Returns attention whose last keys, or those that lengths hide, have special numbers."""
    rng = draft.rng
    count = rng.choice((draft.length() + 1, draft.length() + 1, *LONG))
    width = rng.choice((1, 4, 8, 16))
    dtype = rng.choice(FLOATS)
    rank = rng.choice((2, 3, 4))
    shape = (*(2, 3)[: rank - 2], count, width)
    for _ in range(3):
        draft.argument(shape, dtype)
    mask_text = rng.choice(MASKS).format(n=count, w=rng.randint(1, min(5, count - 1)))
    draft.lines.append(f"i = torch.arange({count})")
    if rank == 4 and rng.random() < 0.5:
        lengths = draft.argument((shape[0],), "int64", INDICES, count)
        mask_text = f"(i <= {lengths}[:, None, None, None]).expand({shape[0]}, 1, {count}, {count})"
    draft.lines.append(f"m = {mask_text}")
    hidden = rng.choice(("", "z", "y", "yz"))
    for name in hidden:
        number = rng.choice(("float('nan')", "float('inf')", "3e38"))
        draft.lines.append(f"{name} = torch.where((i == {count - 1})[:, None], {number}, {name})")
    if rank > 2 and rng.random() < 0.6:
        draft.lines.append(f"return {rng.choice((CAUSAL, *SDPA))}")
    else:
        draft.lines.append(f"s = x @ y.transpose(-1, -2) * {width**-0.5:.4g}")
        draft.lines.append(f"p = {rng.choice(HIDING)}.softmax(-1)")
        draft.lines.append(f"return {rng.choice(('p @ z', 'torch.where(m, p, 0.0) @ z', 'p'))}")
    return draft.finished(specials=(), has_truth=True)
