"""Views written in place: of arguments and of what the module makes, one view or a view of a view."""

from benchmarks.op_corpus.small_modules.arguments import INF, NAN, NORMAL, TRUTHS, ZERO
from benchmarks.op_corpus.small_modules.arguments import INTEGERS as SMALL_INTEGERS
from benchmarks.op_corpus.small_modules.module_text import Draft, SmallModule

TYPES = ("float32", "float32", "float32", "float64", "bfloat16", "int64", "int32", "int8", "bool")
# Of {b}, a matrix of (rows, columns), each 3 at least
VIEWS = (
    "{b}[::2]",
    "{b}[1::3]",
    "{b}[:, ::2]",
    "{b}[:, 1]",
    "{b}[0]",
    "{b}[-1:]",
    "{b}[1:, 1:]",
    "{b}[..., None]",
    "{b}.T",
    "{b}.T[::2]",
    "{b}.select(1, -1)",
    "{b}.narrow(0, 1, 2)",
    "{b}.narrow(1, 0, 2)",
    "{b}.diagonal()",
    "{b}.diagonal(1)",
    "{b}.unfold(0, 2, 2)",
    "{b}.unfold(1, 2, 3)",
    "{b}.unfold(0, 1, 2)",
    "{b}.view(-1)",
    "{b}.view(-1)[::2]",
    "{b}.view(-1)[1::4]",
    "{b}.flatten()[2:]",
    "{b}.unsqueeze(0)",
    "{b}.as_strided((2, 2), (2, 1))",
    "{b}.as_strided((2,), (3,), 1)",
    "{b}.split(2)[0]",
    "{b}.chunk(2, 1)[1]",
    "{b}.unbind(1)[0]",
    "{b}[::2][0]",
    "{b}[1:].T[1:]",
    "{b}[:, ::2].diagonal()",
    "{b}.transpose(0, 1).view_as({b}.T)",
    "{b}.detach()",
    "{b}.expand(1, -1, -1)",
    "{b}.swapaxes(0, 1)[:2]",
    "{b}.movedim(0, 1).narrow(0, 0, 2)",
    "{b}[:2].unflatten(0, (2, 1))",
)
# Of a view v of floats or integers; {k}: a number
WRITES = (
    "v += {k}",
    "v *= {k}",
    "v -= {k}",
    "v.add_({k})",
    "v.mul_(v)",
    "v.copy_(v * {k} + 1)",
    "v.fill_({k})",
    "v.zero_()",
    "v[...] = {k}",
    "v[:1] = {k}",
    "v[-1] = v[0]",
    "v.clamp_(min=0)",
    "v.masked_fill_(v > 0, {k})",
    "v[v > 0] = {k}",
    "v.neg_()",
    "v.sub_(v.sum())",
    "v.copy_(v.flip(0))",
    "v.maximum(v.flip(0)).add_(1); v.abs_()",
    "v.index_fill_(0, torch.tensor([0]), {k})",
    "v.index_put_((torch.tensor([0]),), torch.tensor({k}, dtype=v.dtype))",
    "v.index_put_((torch.tensor([0, 0]),), torch.tensor({k}, dtype=v.dtype), accumulate=True)",
    "v.index_add_(0, torch.tensor([0]), v[:1].clone())",
    "v.square_()",
)
WRITES_OF_TRUTHS = (
    "v.logical_not_()",
    "v[...] = True",
    "v &= ~v",
    "v |= v.flip(0)",
    "v.fill_(False)",
    "v[v] = False",
)
MADE = (
    "x + 1",
    "x.clone()",
    "x * 2",
    "x.flip(0)",
    "torch.zeros_like(x)",
    "x.T.contiguous()",
    "torch.cat([x, x])",
)
RESULTS = ("b", "b + 1", "b, v", "b.sum(0)", "v + 1", "b * 2, v.sum()", "x, b", "b.T.contiguous()")


def written_view(draft: Draft) -> SmallModule:
    """Returns a module that writes into one or two views, and returns the whole."""
    rng = draft.rng
    dtype = rng.choice(TYPES)
    shape = (rng.choice((3, 4, 5, 8, 11)), rng.choice((3, 4, 5, 8, 17)))
    values = {"float32": NORMAL, "float64": NORMAL, "bfloat16": NORMAL, "bool": TRUTHS}.get(
        dtype, SMALL_INTEGERS
    )
    draft.argument(shape, dtype, values)
    writes = WRITES_OF_TRUTHS if dtype == "bool" else WRITES
    base = rng.choice(("x", "x", rng.choice(MADE)))
    if dtype == "bool":
        base = rng.choice(("x", "~x", "x.clone()"))
    draft.lines.append(f"b = {base}")
    for _ in range(rng.choice((1, 1, 2, 3))):
        draft.lines.append(f"v = {rng.choice(VIEWS).format(b='b')}")
        draft.lines.append(rng.choice(writes).format(k=rng.choice(("2", "3", "-1", "0"))))
        if rng.random() < 0.2 and dtype != "bool":
            draft.lines.append(rng.choice(("b += x.sum()", "b.T.add_(1)", "b[0] = b[1]", "w = b.sum()")))
    draft.lines.append(f"return {rng.choice(RESULTS) if dtype != 'bool' else 'b, v'}")
    return draft.finished(specials=(rng.choice((NAN, INF, ZERO)),))
