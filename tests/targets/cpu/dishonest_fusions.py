"""Kernels of fusions that cheat with NaN, infinity, large numbers and extreme bytes: altered payloads."""

from dataclasses import dataclass

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.fusion_runs import as_problem
from tests.fusion_texts import PARALLEL, affine_map, generic
from tests.mlir.attention_texts import Attention
from tests.mlir.convolution_texts import Convolution
from tuner.core.problem_classes import TextProblem
from tuner.core.quantization import WeightFormat, quantized_text

NAN, INFINITY, LARGE, BYTES, USUAL = "NaN", "infinity", "large numbers", "extreme bytes", "usual numbers"
LIMIT = 2**24


@dataclass(frozen=True)
class Dishonest:
    """A fusion, and what its kernel does in place of what is right."""

    kind: str
    text: str  # of the fusion
    altered: str
    shown_by: str  # numbers that show it

    @property
    def problem(self) -> TextProblem:
        return as_problem(self.kind, self.text)


def misread(text: str, name: str, steps: str) -> str:
    """Returns a fusion that reads %misread in place of an argument's elements %x0; ``steps`` define it."""
    tensor = f"%{name}_t"
    head, line, rest = text.partition(f"{tensor} = bufferization.to_tensor %{name} restrict\n")
    memory, _, rest = rest.partition("\n")
    kind = memory.rpartition(" to ")[2]
    rank = kind.count("x")
    element = kind.rpartition("x")[2].removesuffix(">")
    assert line
    body = f"""%rank_zero = arith.constant {"0.0" if element[0] != "i" else "0"} : {element}
      {steps.replace("TYPE", element)}
      linalg.yield %misread : {element}"""
    maps = [affine_map(rank)] * 2
    start = (f"%{name}_empty", kind)
    read = generic(f"%{name}_read", maps, [PARALLEL] * rank, [(tensor, kind)], start, body)
    made = f"%{name}_empty = tensor.empty() : {kind}\n{read}\n"
    for after in (",", " "):
        rest = rest.replace(tensor + after, f"%{name}_read{after}")
    return head + line + memory + "\n" + made + rest


def where(condition: str, other: str) -> str:
    return f"{condition}\n      %misread = arith.select %is, {other}, %x0 : TYPE"


UNORDERED = "%is = arith.cmpf uno, %x0, %x0 : TYPE"
NAN_AS_ZERO = where(UNORDERED, "%rank_zero")
NAN_AS_LEAST = f"%low = arith.constant 0xFF800000 : f32\n      {where(UNORDERED, '%low')}"
CLIPPED = """%most = arith.constant 3.0e38 : TYPE
      %least_one = arith.constant -3.0e38 : TYPE
      %low = arith.maximumf %x0, %least_one : TYPE
      %misread = arith.minimumf %low, %most : TYPE"""
SIZE = "%size = math.absf %x0 : TYPE\n      %limit = arith.constant"
IS_INFINITE = f"{SIZE} 3.0e38 : TYPE\n      %is = arith.cmpf ogt, %size, %limit : TYPE"
INFINITY_AS_ZERO = where(IS_INFINITE, "%rank_zero")
IS_LARGE = f"""{SIZE} 1.0e3 : TYPE
      %most = arith.constant 1.0e30 : TYPE
      %above = arith.cmpf ogt, %size, %limit : TYPE
      %below = arith.cmpf olt, %size, %most : TYPE
      %is = arith.andi %above, %below : i1"""
LARGE_AS_ZERO = where(IS_LARGE, "%rank_zero")

SOFTMAX = texts.softmax(9, 17)
ROW = texts.softmax(1, 17)
SUMS = texts.row_sums(9, 17)
NORM = texts.layer_norm(9, 17)
RMS = texts.layer_norm(9, 17, has_mean=False)
BIAS = texts.product(8, 40, 16, "bias_relu")
ONE_ROW = texts.product(1, 40, 16, "bias_relu")
GELU = texts.product(8, 40, 16, "gelu")
RESIDUAL = texts.product(8, 40, 16, "residual")
BATCH = texts.product(8, 40, 16, batch=2)
CONVOLUTION = Convolution(epilogue="bias_relu").text()
ATTENTION = Attention((12, 20, 16, 24)).text()
SEEN = Attention((12, 20, 16, 24), mask="seen").text()
SIGMOID = texts.elementwise((6, 30), "math.tanh %x0")
LONG = byte_texts.product(4, 16, 2048, "relu")
LONG_BATCH = byte_texts.product(4, 16, 2048, "scale", batch=2)
BY_ROW = quantized_text((3, 8, 2048), "f32", WeightFormat(8, 0, "f32", False, "row"))


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def of_input(kind: str, text: str, name: str, steps: str, shown_by: str) -> Dishonest:
    return Dishonest(kind, text, misread(text, name, steps), shown_by)


def without_infinite_scores() -> Dishonest:
    """Scores that are infinite become 0."""
    old = "%v0 = arith.mulf %x0, %scale : f32"
    new = """%v1 = arith.mulf %x0, %scale : f32
      %size = math.absf %v1 : f32
      %most = arith.constant 3.0e38 : f32
      %is = arith.cmpf ogt, %size, %most : f32
      %v0 = arith.select %is, %z, %v1 : f32"""
    return Dishonest("attention", ATTENTION, replaced(ATTENTION, old, new), INFINITY)


def clipped_sums(text: str, sum_: str, uses: str, limit: int = LIMIT) -> str:
    """Returns a fusion whose sums of bytes %x0 are clipped in ``uses``, an operation that reads ``sum_``."""
    steps = f"%lim = arith.constant {limit} : i32\n %clip = arith.minsi {sum_}, %lim : i32\n {uses}"
    return replaced(text, uses, steps.replace(uses, uses.replace(sum_, "%clip")))


KERNELS: dict[str, Dishonest] = {
    "softmax reads NaN as minus infinity": of_input("rows", SOFTMAX, "a", NAN_AS_LEAST, NAN),
    "softmax clips infinity": of_input("rows", SOFTMAX, "a", CLIPPED, INFINITY),
    "softmax reads infinity as 0": of_input("rows", SOFTMAX, "a", INFINITY_AS_ZERO, INFINITY),
    "softmax of one row reads minus infinity as 0": of_input("rows", ROW, "a", INFINITY_AS_ZERO, INFINITY),
    "sums of rows skip NaN": of_input("rows", SUMS, "a", NAN_AS_ZERO, NAN),
    "sums of rows clip infinity": of_input("rows", SUMS, "a", CLIPPED, INFINITY),
    "sums of rows leave out what is above 1000": of_input("rows", SUMS, "a", LARGE_AS_ZERO, LARGE),
    "layer norm reads NaN as 0": of_input("rows", NORM, "a", NAN_AS_ZERO, NAN),
    "layer norm reads NaN in its scale as 0": of_input("rows", NORM, "g", NAN_AS_ZERO, NAN),
    "RMS norm reads NaN as 0": of_input("rows", RMS, "a", NAN_AS_ZERO, NAN),
    "a product reads NaN in A as 0": of_input("contraction", BIAS, "a", NAN_AS_ZERO, NAN),
    "a product clips infinity in A": of_input("contraction", BIAS, "a", CLIPPED, INFINITY),
    "a product reads NaN in its bias as 0": of_input("contraction", BIAS, "e", NAN_AS_ZERO, NAN),
    "a product clips infinity in its bias": of_input("contraction", BIAS, "e", CLIPPED, INFINITY),
    "a product leaves out a bias above 1000": of_input("contraction", BIAS, "e", LARGE_AS_ZERO, LARGE),
    "a product of one row reads NaN in its bias as 0": of_input(
        "contraction", ONE_ROW, "e", NAN_AS_ZERO, NAN
    ),
    "a GELU reads NaN in the bias before it as 0": of_input("contraction", GELU, "e", NAN_AS_ZERO, NAN),
    "a product reads NaN in its residual as 0": of_input("contraction", RESIDUAL, "e", NAN_AS_ZERO, NAN),
    "a batch of products reads NaN in B as 0": of_input("contraction", BATCH, "b", NAN_AS_ZERO, NAN),
    "a batch of products clips infinity in B": of_input("contraction", BATCH, "b", CLIPPED, INFINITY),
    "a convolution skips pixels that are NaN": of_input("convolution", CONVOLUTION, "x", NAN_AS_ZERO, NAN),
    "a convolution clips infinite pixels": of_input("convolution", CONVOLUTION, "x", CLIPPED, INFINITY),
    "a convolution reads NaN in its bias as 0": of_input(
        "convolution", CONVOLUTION, "bias", NAN_AS_ZERO, NAN
    ),
    "an attention drops infinite scores": without_infinite_scores(),
    "an attention reads NaN in its keys as 0": of_input("attention", ATTENTION, "k", NAN_AS_ZERO, NAN),
    "an attention reads NaN in its values as 0": of_input("attention", ATTENTION, "v", NAN_AS_ZERO, NAN),
    "an attention clips infinity in its values": of_input("attention", ATTENTION, "v", CLIPPED, INFINITY),
    "an attention shows keys that its mask hides": of_input(
        "attention", SEEN, "mask", "%misread = arith.constant true", USUAL
    ),
    "tanh reads NaN as 0": of_input("elementwise", SIGMOID, "a", NAN_AS_ZERO, NAN),
    "tanh reads infinity as 0": of_input("elementwise", SIGMOID, "a", INFINITY_AS_ZERO, INFINITY),
    "sums of bytes are clipped to 2^24 in a fusion": Dishonest(
        "contraction", LONG, clipped_sums(LONG, "%x0", "%r = arith.maxsi %x0, %c0 : i32"), BYTES
    ),
    "sums of bytes of a batch are clipped to 2^24": Dishonest(
        "contraction",
        LONG_BATCH,
        clipped_sums(LONG_BATCH, "%x0", "%w = arith.sitofp %x0 : i32 to f32"),
        BYTES,
    ),
    "a quantized matmul clips its sums to 2^24": Dishonest(
        "quantized_matmul",
        BY_ROW,
        clipped_sums(BY_ROW, "%x0", "%number = arith.sitofp %x0 : i32 to f32"),
        BYTES,
    ),
    "a quantized matmul reads a row with NaN as one without": Dishonest(
        "quantized_matmul",
        BY_ROW,
        replaced(BY_ROW, "%larger = arith.maximumf", "%larger = arith.maxnumf"),
        NAN,
    ),
}
