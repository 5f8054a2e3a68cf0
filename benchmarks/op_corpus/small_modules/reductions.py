"""Reductions of all lengths and types, alone, and two or three that meet in one expression."""

from benchmarks.op_corpus.small_modules.arguments import INF, INTEGERS, NAN, NORMAL, SUBNORMAL, TRUTHS, ZERO
from benchmarks.op_corpus.small_modules.module_text import FLOATS, Draft, SmallModule
from benchmarks.op_corpus.small_modules.module_text import INTEGERS as INTEGER_TYPES

SPECIALS = (NAN, INF, ZERO, SUBNORMAL)
# ``{x}``: what is reduced, ``{d}``: the dimension or dimensions, ``{k}``: keepdim
OF_ONE_DIMENSION = (
    *("{x}.argmax({d}, {k})", "{x}.argmin({d}, {k})", "{x}.cumsum({d})", "{x}.prod({d}, {k})"),
    *("{x}.max({d}, {k}).values", "{x}.min({d}, {k}).indices", "{x}.cumprod({d})"),
)
OF_ANY = (
    "{x}.sum({d}, {k})",
    "{x}.amax({d}, {k})",
    "{x}.amin({d}, {k})",
    "torch.count_nonzero({x}, dim={d})",
)
OF_TRUTHS = (
    "{x}.any({d}, {k})",
    "{x}.all({d}, {k})",
    "{x}.sum({d}, {k})",
    "torch.count_nonzero({x}, dim={d})",
)
OF_FLOATS = (
    *("{x}.mean({d}, {k})", "{x}.var({d}, {k}, unbiased=False)", "{x}.var({d}, {k})", "{x}.std({d}, {k})"),
    *("{x}.norm(2, {d}, {k})", "{x}.norm(1, {d}, {k})", "torch.linalg.vector_norm({x}, torch.inf, {d}, {k})"),
    *("{x}.logsumexp({d}, {k})", "{x}.nansum({d}, {k})", "{x}.isnan().any({d}, {k})"),
    *("torch.linalg.vector_norm({x}, 3, {d}, {k})", "{x}.norm(0.5, {d}, {k})"),
)
OF_A_FLOAT_DIMENSION = (
    "{x}.softmax({d})",
    "{x}.log_softmax({d})",
    "F.softmin({x}, {d})",
    "{x}.logcumsumexp({d})",
)
BEFORE = ("{x}", "{x}", "{x}", "({x} * {x})", "{x}.abs()", "({x} + 1)", "(-{x})", "{x}[..., ::2]", "{x}.T")
BEFORE_OF_TRUTHS = ("{x}", "(~{x})", "({x} & {x}.flip(0))", "({x} ^ {x}.flip(-1))")
BEFORE_TRUTHS = (
    "({x} > 0)",
    "(~({x} > 0))",
    "(({x} > 0) & ~({x} > 1))",
    "({x} != 0)",
    "(({x} < 0) | ({x} == 1))",
)
CONDITIONS = (*BEFORE_TRUTHS, "({x} >= {x}.flip(-1))", "({x} == {x}.round())")
OF_A_CONDITION = (
    "{c}.sum({d})",
    "{c}.any({d})",
    "{c}.all({d})",
    "{c}.float().mean({d})",
    "{c}.count_nonzero({d})",
)
OF_SELECTED = ("torch.where({c}, {x}, 0).sum({d})", "({x} * {c}).sum({d})", "({x} * {c}).amax({d})")
MEETING = (
    "{a} / {b}",
    "{a} / ({b} + {c}).clamp(min=1)",
    "{a} - {b}",
    "{a} * {b} - {c}",
    "torch.where({a} > {b}, {a}, {c})",
    "torch.maximum({a}, {b})",
    "{a} / ({b} * {b} + 1)",
    "torch.stack([{a} + {b}, {b} + {c}])",
    "({a} / ({b} * 1.0).abs().clamp(min=0.5)).sqrt()",
    "({a} * {c} == {b} * {c}) * 1",
)


def reduction(draft: Draft) -> SmallModule:
    """Returns one reduction of one tensor."""
    rng = draft.rng
    dtype = rng.choice((*FLOATS, *INTEGER_TYPES, "bool"))
    rank = rng.choice((1, 2, 2, 2, 3))
    is_float = dtype in FLOATS
    values = NORMAL if is_float else INTEGERS
    before: tuple[str, ...] = BEFORE
    if dtype == "bool":
        values = TRUTHS
        before = BEFORE_OF_TRUTHS
    name = draft.argument(draft.shape(rank), dtype, values)
    x = rng.choice(before if rank == 2 or dtype == "bool" else before[:-1]).format(x=name)
    choices = OF_TRUTHS if dtype == "bool" else (*OF_ANY, *OF_ONE_DIMENSION)
    if is_float:
        choices = (*choices, *OF_FLOATS, *OF_A_FLOAT_DIMENSION)
    if dtype != "bool" and rng.random() < 0.2:
        x = rng.choice(BEFORE_TRUTHS).format(x=name)
        choices = OF_TRUTHS
    drawn = rng.choice(choices)
    text = drawn.format(x=x, d=_dimension(draft, drawn, rank), k=f"keepdim={rng.random() < 0.5}")
    draft.lines.append(f"return {text}")
    return draft.finished(specials=(rng.choice(SPECIALS),), has_truth=is_float)


def _dimension(draft: Draft, text: str, rank: int) -> str:
    one = str(draft.rng.choice((-1, 0, rank - 1)))
    if text in OF_ONE_DIMENSION or text in OF_A_FLOAT_DIMENSION or ".any(" in text or ".all(" in text:
        return one
    return draft.rng.choice((one, one, str(tuple(range(rank))), str(tuple(range(max(0, rank - 2), rank)))))


def meeting_reductions(draft: Draft) -> SmallModule:
    """Returns two or three reductions of the same length in one expression."""
    rng = draft.rng
    dtype = rng.choice((*FLOATS, "int32", "int64", "int8"))
    is_float = dtype in FLOATS
    rank = rng.choice((1, 1, 2, 2))
    shape = draft.shape(rank)
    for _ in range(rng.choice((1, 1, 2))):
        draft.argument(shape, dtype, NORMAL if is_float else INTEGERS)
    dimension = rng.choice((-1, 0))
    if rank == 1:
        dimension = rng.choice((-1, 0))
    for letter in "abc":
        draft.lines.append(f"{letter} = {_met(draft, dimension, is_float)}")
    draft.lines.append(f"r = {rng.choice(MEETING).format(a='a', b='b', c='c')}")
    result = "r"
    if rng.random() < 0.3 and "stack" not in draft.lines[-1]:
        axis = ".unsqueeze(-1)" if dimension == -1 else ""
        result = rng.choice(("x * r{u}", "torch.where(x > r{u}, x, r{u})", "(x - r{u}).sum(0)")).format(
            u=axis
        )
    draft.lines.append(f"return {result}")
    return draft.finished(specials=(rng.choice(SPECIALS),), has_truth=is_float)


def _met(draft: Draft, dimension: int, is_float: bool) -> str:
    rng = draft.rng
    x = rng.choice("xy"[: len(draft.arguments)])
    condition = rng.choice(CONDITIONS).format(x=x)
    choices: tuple[str, ...] = (
        *OF_A_CONDITION,
        *OF_A_CONDITION,
        *OF_SELECTED,
        "{x}.sum({d})",
        "{x}.amax({d})",
    )
    if is_float:
        choices = (*choices, "{x}.mean({d})", "{x}.var({d}, unbiased=False)", "({x} * {x}).sum({d})")
    text = rng.choice(choices).format(x=x, c=condition, d=dimension)
    if ".any(" in text or ".all(" in text:
        return f"{text}.to({x}.dtype)"
    return text
