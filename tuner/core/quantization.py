"""Weights of a matmul as small integers with a scale for each group of K, and the payload that uses them.

    >>> quantized_text((1, 4096, 4096), "f32", WeightFormat(4, 128))     # C = A W^T, W of n x k
    func.func @fusion(%a: memref<1x4096xf32>, %b: memref<4096x4096xi8> {tuner.bits = 4 : i64, tuner.weight},
                     %s: memref<4096x32xf16> {tuner.weight}, %c: memref<1x4096xf32>) ...

A weight is ``(q - zero_point) * scale``; without zero points ``q * scale``. q is an i8 of which the lowest
``bits`` are used: -8 to 7 for 4 bits. With quantized activations A becomes i8 as well, for each group of K or
each row: ``scale = max |a| / 127``, ``q = round(a / scale)``, in f32. The payload says so, operation by
operation, so that a kernel's result differs from the reference by the rounding of sums only.
"""

from dataclasses import dataclass

from tuner.core.dtypes import FLOATS, number_type
from tuner.core.errors import UsageError, unknown_value

WEIGHT_BITS = {"i4": 4, "i8": 8}
SCALE_DTYPES = tuple(name for name in reversed(FLOATS) if number_type(name).bits <= 32)
ACTIVATION_DTYPES = ("f32", "bf16")  # of A in memory
BY_GROUP, BY_ROW = ACTIVATION_SCALES = ("group", "row")
GROUP_MULTIPLE = 32  # the least group, and what others are multiples of
LEAST_GROUP = 16  # the same of 8 bits where activations are not quantized, as Q6_K of GGUF has
GROUP_LIMIT = 2**20
CHANNEL = "channel"  # one group: all of K
GREATEST = 127  # a quantized activation is between -127 and 127
LEAST_MAXIMUM = "1.0e-30"  # groups of A whose greatest magnitude is below it become zeros
# attributes of the function, of its argument
QUANTIZATION = "tuner.quantization"
BITS = "tuner.bits"
CONSTANT = "constant"  # in place of a WeightFormat's text: B as it is, packed ahead


@dataclass(frozen=True)
class WeightFormat:
    """How the weights of a matmul are quantized, and whether its activations are.

    Its text, ``i4-g128-f16-zp-a8row``, is part of a problem's key. Raises UsageError for bits, a group size,
    a type of scales or a quantization of activations that is not supported.
    """

    bits: int  # of a weight: 4 or 8
    group: int = 0  # elements of K that share a scale; 0: all of K ("channel")
    scale_dtype: str = "f16"
    has_zero_points: bool = False
    activations: str = ""  # "": A as it comes; else A becomes i8 by "group" or by "row"

    def __post_init__(self) -> None:
        if self.bits not in WEIGHT_BITS.values():
            raise UsageError(f"weights: found {self.bits} bits, allowed 4 or 8")
        multiple = self.group_multiple
        if self.group % multiple or self.group < 0:
            allowed = f"{CHANNEL} or multiples of {multiple}, such as 32, 64, 128"
            raise UsageError(f"group size: found {self.group}, allowed {allowed}")
        if self.scale_dtype not in SCALE_DTYPES:
            allowed = ", ".join(SCALE_DTYPES)
            raise UsageError(f"scale dtype: found {self.scale_dtype!r}, allowed {allowed}")
        if self.activations not in ("", *ACTIVATION_SCALES):
            raise UsageError(f"activations: found i8 by {self.activations!r}, allowed by group or row")
        if self.activations == BY_GROUP and not self.group:
            raise UsageError(f"activations: found i8 by group with weights by {CHANNEL}, allowed by row")

    @property
    def group_multiple(self) -> int:
        """Returns the least group of such weights, which other groups are multiples of."""
        if self.bits == WEIGHT_BITS["i8"] and not self.activations:
            return LEAST_GROUP
        return GROUP_MULTIPLE

    def __str__(self) -> str:
        parts = [f"i{self.bits}", f"g{self.group}" if self.group else CHANNEL, self.scale_dtype]
        if self.has_zero_points:
            parts.append("zp")
        return "-".join(parts + ([f"a8{self.activations}"] if self.activations else []))

    @classmethod
    def of_text(cls, text: str) -> "WeightFormat":
        """Returns the format of a text such as ``i4-g128-f16-zp-a8row``.

        Raises UsageError for any other text.
        """
        bits, _, rest = text.partition("-")
        group, _, rest = rest.partition("-")
        dtype, *options = rest.split("-")
        activations = next((option.removeprefix("a8") for option in options if option.startswith("a8")), "")
        if group == CHANNEL:
            size = 0
        elif group[1:].isdecimal():
            size = int(group[1:])
        else:
            size = -1
        found = cls(WEIGHT_BITS.get(bits, 0), size, dtype, "zp" in options, activations)
        if str(found) != text:
            raise UsageError(f"weights: found {text!r}, allowed texts such as {found}")
        return found

    def groups(self, k: int) -> int:
        """Returns how many groups (weights that share a scale) a column of k weights has."""
        if self.group:
            return k // self.group
        return 1

    def require_depth(self, k: int) -> None:
        """Raises UsageError if the group size does not divide k."""
        if self.group and k % self.group:
            raise UsageError(
                f"group size: found {self.group}, which does not divide k = {k}; allowed are divisors of k "
                f"that are multiples of {self.group_multiple}, or {CHANNEL}"
            )

    def moved_bytes(self, sizes: tuple[int, int, int], input_bytes: int, output_bytes: int) -> int:
        """Returns the bytes of A, of the packed weights with scales and zero points, and of C, in all.

        ``sizes``: (m, n, k); ``input_bytes``, ``output_bytes``: of an element of A and of C.
        """
        m, n, k = sizes
        return input_bytes * m * k + self.weight_bytes(n, k) + output_bytes * m * n

    def weight_bytes(self, n: int, k: int) -> int:
        """Returns the bytes of n x k packed weights with their scales and zero points."""
        scale_bytes = (4 if self.scale_dtype == "f32" else 2) + self.has_zero_points
        return n * k * self.bits // 8 + n * self.groups(k) * scale_bytes


def parsed_format(
    weights: str, group_size: int | str, scale_dtype: str, activations: str, *, has_zero_points: bool
) -> WeightFormat:
    """Returns the format that a user's arguments describe; ``tuner.Matmul`` explains them.

    ``weights``: "i4", "i8", or a whole format such as "i4-g128-f16", to which the other arguments do not
    apply. Raises UsageError for values that are not allowed.
    """
    if "-" in weights:
        return WeightFormat.of_text(weights)
    if weights not in WEIGHT_BITS:
        raise unknown_value("weights", weights, tuple(WEIGHT_BITS))
    group = _parsed_group(group_size)
    by = _parsed_activations(activations, group)
    return WeightFormat(WEIGHT_BITS[weights], group, scale_dtype, has_zero_points, by)


def _parsed_group(given: int | str) -> int:
    if given == CHANNEL:
        return 0
    text = str(given)
    if not text.isdecimal() or not 0 < int(text[:9]) <= GROUP_LIMIT:
        raise UsageError(f"group size: found {given!r}, allowed 32, 64, 128, ... or {CHANNEL}")
    return int(text)


def _parsed_activations(given: str, group: int) -> str:
    known = {
        "": "",
        "i8": BY_GROUP if group else BY_ROW,
        **{f"i8-{scales}": scales for scales in ACTIVATION_SCALES},
    }
    if given not in known:
        raise unknown_value("activations", given, tuple(filter(None, known)))
    return known[given]


@dataclass(frozen=True)
class _Tensors:
    """The sizes of a payload's tensors, by which their MLIR types are made."""

    m: int
    n: int
    groups: int
    depth: int  # elements of K in a group

    def of(self, names: str, element: str) -> str:
        """Returns the type whose dimensions have the sizes of ``names``: ``mgk`` is m x groups x depth."""
        sizes = {"m": self.m, "n": self.n, "g": self.groups, "k": self.depth}
        return f"tensor<{'x'.join(str(sizes[name]) for name in names)}x{element}>"


def quantized_text(
    sizes: tuple[int, int, int], dtype: str, weights: WeightFormat, output: str = "f32"
) -> str:
    """Returns the payload of C = A W^T with quantized W: a module with the function ``fusion``.

    Args:
        sizes: (m, n, k); A is m x k, the integers of W are n x k, scales and zero points n x groups.
        dtype: of A in memory, f32 or bf16.
        weights: the format of W.
        output: the type of C, f32 or bf16.

    Raises UsageError where the group size does not divide k, and for another dtype.
    """
    m, n, k = sizes
    weights.require_depth(k)
    if dtype not in ACTIVATION_DTYPES:
        allowed = " or ".join(ACTIVATION_DTYPES)
        raise UsageError(f"dtype: found {dtype} with quantized weights, allowed {allowed}")
    types = _Tensors(m, n, weights.groups(k), k // weights.groups(k))
    bits = f"{BITS} = {weights.bits} : i64, tuner.weight"
    of_zeros = f", %z: memref<{n}x{types.groups}xi8> {{{bits}}}" if weights.has_zero_points else ""
    moved = weights.moved_bytes(sizes, 2 if dtype == "bf16" else 4, 2 if output == "bf16" else 4)
    if weights.activations:
        product = _product_of_integers(types, weights)
    else:
        product = _product(types, dtype)
    return f"""module {{
  func.func @fusion(%a: memref<{m}x{k}x{dtype}>, %b: memref<{n}x{k}xi8> {{{bits}}}, %s: \
memref<{n}x{types.groups}x{weights.scale_dtype}> {{tuner.weight}}{of_zeros}, %c: memref<{m}x{n}x{output}>) \
attributes {{tuner.bytes = {moved} : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, \
tuner.loops = array<i64: {m}, {n}>, {QUANTIZATION} = "{weights}", tuner.transposed = 0 : i64, \
tuner.weights = 1 : i64}} {{
    %zero = arith.constant 0.0 : f32
{_read("A", m, k, dtype, types.of("mgk", dtype))}{_read("B", n, k, "i8", types.of("ngk", "i8"))}\
    %S = bufferization.to_tensor %s restrict : memref<{n}x{types.groups}x{weights.scale_dtype}> to \
{types.of("ng", weights.scale_dtype)}
{_zero_points(types) if weights.has_zero_points else ""}\
{_wide_scales(types, weights)}\
{_quantized_rows(types, dtype, weights) if weights.activations else _weights(types, weights)}\
{product}\
{_result(types, output)}\
    bufferization.materialize_in_destination %C in restrict writable %c : ({types.of("mn", output)}, \
memref<{m}x{n}x{output}>) -> ()
    return
  }}
}}
"""


def _read(name: str, rows: int, k: int, element: str, kind: str) -> str:
    flat = f"tensor<{rows}x{k}x{element}>"
    sizes = ", ".join(kind.removeprefix("tensor<").split("x")[:3])
    return f"""\
    %{name}_flat = bufferization.to_tensor %{name.lower()} restrict : memref<{rows}x{k}x{element}> to {flat}
    %{name} = tensor.expand_shape %{name}_flat [[0], [1, 2]] output_shape [{sizes}] : {flat} into {kind}
"""


def _zero_points(types: _Tensors) -> str:
    return (
        f"    %Z = bufferization.to_tensor %z restrict : memref<{types.n}x{types.groups}xi8> to "
        f"{types.of('ng', 'i8')}\n"
    )


def _wide_scales(types: _Tensors, weights: WeightFormat) -> str:
    """Returns the text of the ops that make %scale, the scales in f32; "" if they are f32 already."""
    if weights.scale_dtype == "f32":
        return ""
    kind = types.of("ng", "f32")
    source = types.of("ng", weights.scale_dtype)
    body = f"%wide = arith.extf %x0 : {weights.scale_dtype} to f32\nlinalg.yield %wide : f32"
    return _empty("scale_empty", kind) + _generic(
        "scale", "ng", (("%S", "ng", source),), ("%scale_empty", "ng", kind), body
    )


def _empty(name: str, kind: str) -> str:
    return f"    %{name} = tensor.empty() : {kind}\n"


def _generic(
    result: str, loops: str, ins: tuple[tuple[str, str, str], ...], out: tuple[str, str, str], body: str
) -> str:
    """Returns the text of a linalg.generic that makes ``result``.

    ``ins`` and ``out``: (value, the loops of its dimensions, type); ``loops``: a letter for each loop;
    ``body``: lines on the elements %x0, %x1, ... of ``ins`` and %before of ``out``.
    """
    spelled = ", ".join
    maps = []
    elements = []
    for _, dimensions, type_ in (*ins, out):
        maps.append(f"affine_map<({spelled(loops)}) -> ({spelled(dimensions)})>")
        elements.append(type_.rstrip(">").rpartition("x")[2])
    kinds = [f'"{"parallel" if loop in out[1] else "reduction"}"' for loop in loops]
    names = [f"%x{index}" for index in range(len(ins))] + ["%before"]
    arguments = spelled(f"{name}: {element}" for name, element in zip(names, elements, strict=True))
    operands = ""
    if ins:
        values, _, types = zip(*ins, strict=True)
        operands = f"ins({spelled(values)} : {spelled(types)}) "
    lines = "\n".join(f"      {line}" for line in body.splitlines())
    return f"""\
    %{result} = linalg.generic {{indexing_maps = [{spelled(maps)}], iterator_types = [{spelled(kinds)}]}} \
{operands}outs({out[0]} : {out[2]}) {{
    ^bb0({arguments}):
{lines}
    }} -> {out[2]}
"""


def _weights(types: _Tensors, weights: WeightFormat) -> str:
    """Returns the text of the ops that make %W, the weights in f32: (q - zero point) * scale."""
    kind = types.of("ngk", "f32")
    scales = (_scales(weights), "ng", types.of("ng", "f32"))
    shift = "%q = arith.sitofp %x0 : i8 to f32\n"
    ins: tuple[tuple[str, str, str], ...] = (("%B", "ngk", types.of("ngk", "i8")), scales)
    if weights.has_zero_points:
        ins = (*ins, ("%Z", "ng", types.of("ng", "i8")))
        shift = (
            "%wide = arith.sitofp %x0 : i8 to f32\n%point = arith.sitofp %x2 : i8 to f32\n"
            "%q = arith.subf %wide, %point : f32\n"
        )
    body = f"{shift}%w = arith.mulf %q, %x1 : f32\nlinalg.yield %w : f32"
    return _empty("W_empty", kind) + _generic("W", "ngk", ins, ("%W_empty", "ngk", kind), body)


def _scales(weights: WeightFormat) -> str:
    if weights.scale_dtype == "f32":
        return "%S"
    return "%scale"


def _product(types: _Tensors, dtype: str) -> str:
    """Returns the text of the ops that make %total, the product A W^T in f32."""
    kind = types.of("mn", "f32")
    return (
        _empty("sums_empty", kind)
        + f"    %sums = linalg.fill ins(%zero : f32) outs(%sums_empty : {kind}) -> {kind}\n"
        + _contract("total", types.of("mgk", dtype), types.of("ngk", "f32"), "%A, %W", ("%sums", "mn", kind))
    )


def _contract(result: str, a: str, b: str, loops: str, out: tuple[str, str, str]) -> str:
    maps = ", ".join(
        f"affine_map<(m, n, g, k) -> ({', '.join(dimensions)})>" for dimensions in ("mgk", "ngk", out[1])
    )
    return f"""\
    %{result} = linalg.contract indexing_maps = [{maps}] ins({loops} : {a}, {b}) outs({out[0]} : {out[2]}) \
-> {out[2]}
"""


def _quantized_rows(types: _Tensors, dtype: str, weights: WeightFormat) -> str:
    """Returns the text of the ops that make %Q, A in i8, and %row_scale, a scale per row (and group)."""
    by = "mg" if weights.activations == BY_GROUP else "m"
    a = types.of("mgk", dtype)
    numbers = types.of(by, "f32")
    integers = types.of("mgk", "i8")
    wide = "" if dtype == "f32" else f"%wide = arith.extf %x0 : {dtype} to f32\n"
    name = "%wide" if wide else "%x0"
    largest = f"""{wide}%size = math.absf {name} : f32
%larger = arith.maximumf %before, %size : f32
linalg.yield %larger : f32"""
    inverse = """%is_small = arith.cmpf olt, %x0, %least : f32
%divided = arith.divf %greatest, %x0 : f32
%inverse = arith.select %is_small, %zero, %divided : f32
linalg.yield %inverse : f32"""
    integer = f"""{wide}%scaled = arith.mulf {name}, %x1 : f32
%rounded = math.roundeven %scaled : f32
%q = arith.fptosi %rounded : f32 to i8
linalg.yield %q : i8"""
    divided = "%scale_of_row = arith.divf %x0, %greatest : f32\nlinalg.yield %scale_of_row : f32"
    every = ("%largest", by, numbers)
    return (
        f"    %greatest = arith.constant {GREATEST}.0 : f32\n"
        f"    %least = arith.constant {LEAST_MAXIMUM} : f32\n"
        + _empty("largest_empty", numbers)
        + f"    %none = linalg.fill ins(%zero : f32) outs(%largest_empty : {numbers}) -> {numbers}\n"
        + _generic("largest", "mgk", (("%A", "mgk", a),), ("%none", by, numbers), largest)
        + _generic("inverses", by, (every,), ("%largest_empty", by, numbers), inverse)
        + _generic("row_scale", by, (every,), ("%largest_empty", by, numbers), divided)
        + _empty("Q_empty", integers)
        + _generic(
            "Q",
            "mgk",
            (("%A", "mgk", a), ("%inverses", by, numbers)),
            ("%Q_empty", "mgk", integers),
            integer,
        )
    )


def _product_of_integers(types: _Tensors, weights: WeightFormat) -> str:
    """Returns the text of the ops that make %total, the product of A and W if both are integers.

    %total is the sum over groups of the i32 sums of a group, each times the scales of the group.
    """
    by = "mg" if weights.activations == BY_GROUP else "m"
    sums = types.of("mng", "i32")
    total = types.of("mn", "f32")
    b = types.of("ngk", "i8")
    lines = ""
    if weights.has_zero_points:
        b = types.of("ngk", "i32")
        body = """%wide = arith.extsi %x0 : i8 to i32
%point = arith.extsi %x1 : i8 to i32
%q = arith.subi %wide, %point : i32
linalg.yield %q : i32"""
        ins = (("%B", "ngk", types.of("ngk", "i8")), ("%Z", "ng", types.of("ng", "i8")))
        lines = _empty("W_empty", b) + _generic("W", "ngk", ins, ("%W_empty", "ngk", b), body)
    add = """%number = arith.sitofp %x0 : i32 to f32
%of_weight = arith.mulf %number, %x1 : f32
%scaled = arith.mulf %of_weight, %x2 : f32
%sum = arith.addf %before, %scaled : f32
linalg.yield %sum : f32"""
    scaled = (
        ("%sums", "mng", sums),
        (_scales(weights), "ng", types.of("ng", "f32")),
        ("%row_scale", by, types.of(by, "f32")),
    )
    factors = "%Q, %W" if weights.has_zero_points else "%Q, %B"
    return (
        lines
        + "    %nothing = arith.constant 0 : i32\n"
        + _empty("sums_empty", sums)
        + f"    %cleared = linalg.fill ins(%nothing : i32) outs(%sums_empty : {sums}) -> {sums}\n"
        + _contract("sums", types.of("mgk", "i8"), b, factors, ("%cleared", "mng", sums))
        + _empty("total_empty", total)
        + f"    %start = linalg.fill ins(%zero : f32) outs(%total_empty : {total}) -> {total}\n"
        + _generic("total", "mng", scaled, ("%start", "mn", total), add)
    )


def _result(types: _Tensors, output: str) -> str:
    """Returns the text of the op that makes %C from %total: a conversion to the type of C, or a copy."""
    kind = types.of("mn", output)
    total = types.of("mn", "f32")
    body = "linalg.yield %x0 : f32"
    if output != "f32":
        body = f"%rounded = arith.truncf %x0 : f32 to {output}\nlinalg.yield %rounded : {output}"
    return _empty("C_empty", kind) + _generic(
        "C", "mn", (("%total", "mn", total),), ("%C_empty", "mn", kind), body
    )
