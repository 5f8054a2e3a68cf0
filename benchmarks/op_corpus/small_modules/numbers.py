"""Powers of all exponents, conversions between all types, and arithmetic of dynamic sizes."""

from benchmarks.op_corpus.small_modules.arguments import (
    ENDS,
    INF,
    LARGE,
    NAN,
    NORMAL,
    POSITIVE,
    SUBNORMAL,
    TRUTHS,
    ZERO,
)
from benchmarks.op_corpus.small_modules.arguments import INTEGERS as SMALL_INTEGERS
from benchmarks.op_corpus.small_modules.module_text import FLOATS, INTEGERS, Draft, SmallModule

SPECIALS = (NAN, INF, ZERO, SUBNORMAL, LARGE)
EXPONENTS = (
    "0",
    "0.5",
    "-0.5",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "2.5",
    "4",
    "1.0",
    "2.0",
    "-1.0",
    "0.0",
    "1/3",
    "7",
)
INTEGER_EXPONENTS = ("0", "1", "2", "3", "4", "5", "2.0", "0.5", "-1.0", "-0.5", "2.5")
POWERS = (
    "x ** {e}",
    "torch.pow(x, {e})",
    "torch.float_power(x, {e})",
    "(-x) ** {e}",
    "x.abs() ** {e} * x.sign()",
    "x.pow({e}).sum(-1)",
    "1 / x ** {e}",
    "x.clone().pow_({e})",
    "(x ** {e}) ** {f}",
    "(x + 1) ** {e} - x ** {f}",
)
BASES = ("2 ** x", "2.0 ** x", "0.5 ** x", "torch.pow(3, x)", "(-2.0) ** x", "0.0 ** x", "1 ** x", "10 ** x")
TENSORS = (
    "x ** y",
    "torch.pow(x.abs(), y)",
    "torch.float_power(x, y)",
    "x ** y.round()",
    "x ** (y > 0)",
    "x ** y[0]",
)
ROOTS = ("x.sqrt()", "x.rsqrt()", "x.reciprocal()", "x.square()", "x.abs().sqrt() * x", "torch.hypot(x, x)")
INTEGER_ARITHMETIC = (
    "x // {n}",
    "x % {n}",
    "torch.fmod(x, {n})",
    "torch.remainder(x, {n})",
    "x / {n}",
    "torch.div(x, {n}, rounding_mode='trunc')",
    "x * {n}",
    "x + {n}",
    "x.clamp({n})",
    "x.clamp(max={n})",
    "torch.where(x > {n}, x, {n})",
    "x == {n}",
    "torch.full_like(x, {n}) - x",
    "(x.float() * {n}).to(x.dtype)",
    "x.abs() - {n} * x.sign()",
    "x << 1",
    "x >> 1",
    "x.bitwise_not() ^ {n}",
    "x.gcd(x + 4)",
)
CONSTANTS = ("2", "3", "-3", "7", "100", "2.5")
CONVERTED = (
    "x.to(torch.{t})",
    "x.to(torch.{t}).to(torch.{u})",
    "x.to(torch.{t}).to(torch.float64) + 1",
    "x.type(torch.{t})",
    "x.to(torch.{t}).sum()",
    "x.to(torch.{t}) == x",
    "torch.cat([x.to(torch.{t}), x.to(torch.{t}).flip(0)])",
    "x.round().to(torch.{t})",
    "x.clamp(-100, 100).to(torch.{t})",
    "torch.zeros_like(x, dtype=torch.{t}).copy_(x)",
)
REDUCED = (
    "x.half().var()",
    "x.bfloat16().mean(-1)",
    "x.half().sum(-1, dtype=torch.float32)",
    "x.double().std(-1)",
)
TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
# Of a dynamic size n
SIZES = ("n", "n", "n + 1", "2 * n", "n * n", "n - 1")
OF_SIZE = (
    "x * {n}",
    "x / {n}",
    "x + float({n})",
    "x * ({n} // 2)",
    "x + {n} % 3",
    "x * (-{n} % 4)",
    "x * round({n} / 3)",
    "x * round({n}, -1)",
    "x + min({n}, 5)",
    "x + max({n}, 5)",
    "x / math.sqrt({n})",
    "x * {n} ** 0.5",
    "x * {n} ** -0.5",
    "x * ({n} / 2)",
    "x * math.ceil({n} / 2)",
    "x + math.floor({n} / 4)",
    "x * int({n} / 2)",
    "x * (1 if {n} > 4 else 2)",
    "x * bool({n} % 2)",
    "x * len(x)",
    "x.sum(0) / {n}",
    "x.sum(0) / max({n}, 2)",
    "x.mean(0)",
    "x.var(0, unbiased=False)",
    "x - x.mean(0)",
    "torch.arange({n}) + 1",
    "x + torch.arange(n)[:, None]",
    "torch.arange(n) / {n}",
    "torch.full((n,), float({n}))",
    "x.new_zeros({n}, 2)",
    "x[: n // 2]",
    "x[n // 2 :]",
    "x[-1] * {n}",
    "x[::2]",
    "x.flip(0)",
    "torch.cat([x, x]) * {n}",
    "F.pad(x, (0, 0, 0, 1))",
    "x.softmax(0)",
    "x.cumsum(0)",
    "x @ x.T / {n} ** 0.5",
    "x.reshape(-1)",
    "x.repeat(2, 1)",
    "x.argmax(0)",
    "x.amax(0) * math.log({n} + 1)",
    "(x > 0).sum(0) / {n}",
    "torch.tril(torch.ones(n, n)) * {n}",
    "x.view(n, -1, 2).sum(-1)",
    "x.transpose(0, 1).reshape(2, -1)",
    "x.roll(1, 0)",
    "torch.linspace(0, 1, n)",
    "x.topk(1, 0).values",
    "x.sort(0).values",
    "x.norm(dim=0)",
    "x.index_select(0, torch.arange(n))",
    "torch.where(torch.arange(n)[:, None] < {n} // 2, x, 0)",
)


def power(draft: Draft) -> SmallModule:
    """Returns a power of numbers of some type, with an exponent that is a constant or a tensor."""
    rng = draft.rng
    dtype = rng.choice((*FLOATS, *FLOATS, *INTEGERS))
    is_float = dtype in FLOATS
    values = NORMAL if is_float else rng.choice((SMALL_INTEGERS, SMALL_INTEGERS, ENDS))
    shape = draft.shape(rng.choice((1, 2)))
    draft.argument(shape, dtype, values)
    exponents = EXPONENTS if is_float else INTEGER_EXPONENTS
    texts = {
        "constant": POWERS,
        "base": BASES,
        "root": ROOTS,
        "integers": INTEGER_ARITHMETIC,
        "tensor": TENSORS,
    }
    form = rng.choice(("constant", "constant", "constant", "base", "tensor", "root"))
    if not is_float:
        form = rng.choice(("constant", "constant", "integers", "integers", "integers"))
    if form == "tensor":
        draft.argument(shape, rng.choice((dtype, dtype, "float32")), rng.choice((NORMAL, POSITIVE)))
    text = rng.choice(texts[form]).format(
        e=_exponent(rng.choice(exponents)), f=_exponent(rng.choice(exponents)), n=rng.choice(CONSTANTS)
    )
    draft.lines.append(f"return {text}")
    return draft.finished(specials=tuple(rng.sample(SPECIALS, 3)))


def _exponent(text: str) -> str:
    return f"({text})" if "/" in text or text.startswith("-") else text


def conversion(draft: Draft) -> SmallModule:
    """Returns a conversion between two types, of numbers at the ends of ranges and of others."""
    rng = draft.rng
    dtype = rng.choice(TYPES)
    values = rng.choice((ENDS, ENDS, NORMAL))
    if dtype == "bool":
        values = TRUTHS
    elif dtype not in FLOATS and values == NORMAL:
        values = SMALL_INTEGERS
    draft.argument(draft.shape(rng.choice((1, 2))), dtype, values)
    converted: tuple[str, ...] = CONVERTED
    if dtype in FLOATS and values == NORMAL:
        converted = (*CONVERTED, *REDUCED)
    text = rng.choice(converted).format(t=rng.choice(TYPES), u=rng.choice(TYPES))
    draft.lines.append(f"return {text}")
    return draft.finished(specials=(rng.choice((NAN, INF, ZERO, SUBNORMAL)),))


def dynamic_size(draft: Draft) -> SmallModule:
    """Returns arithmetic of a size that changes from call to call."""
    rng = draft.rng
    size = rng.choice((4, 5, 6, 9))
    draft.argument((size, rng.choice((2, 4, 6))), rng.choice(("float32", "float32", "float64")), dynamic=0)
    first, second = (rng.choice(OF_SIZE).format(n=f"({rng.choice(SIZES)})") for _ in range(2))
    draft.lines += ["import math", "n = x.shape[0]", f"return {first}"]
    if rng.random() < 0.4:
        draft.lines[-1] += f", {second}"
    sizes = (1, *rng.sample(range(2, 34), 3))
    return draft.finished(sizes=sizes, has_truth=True)
