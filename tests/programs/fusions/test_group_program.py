"""Payloads become fusions: how many, of which kinds, and what is refused."""

import hashlib
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tests.programs.fusions.payload_text import PayloadText, Tensor
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.fusions import RESULT, TEMPORARY, WEIGHT, FusedProgram
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.programs.fusion_compiler import initialized
from tuner.programs.fusions.hoisting import init_parts
from tuner.programs.fusions.payload import NotFused
from tuner.programs.fusions.pipeline import fuse_program

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(0)


def weight(payload: PayloadText, *shape: int) -> Tensor:
    return payload.weight(RNG.standard_normal(shape) / shape[-1])


def linear(payload: PayloadText, value: Tensor, size: int) -> Tensor:
    """A linear layer as torch-mlir writes it: its weights are transposed at each call."""
    turned = payload.transpose(weight(payload, size, value.shape[-1]), (1, 0))
    return payload.binary("add", payload.matmul(value, turned), weight(payload, size))


def mlp() -> str:
    payload = PayloadText()
    hidden = payload.unary("relu", linear(payload, payload.argument(4, 6), 8))
    return payload.text(linear(payload, hidden, 8))


def gated() -> str:
    payload = PayloadText()
    x = payload.argument(4, 6)
    gate, up = (payload.matmul(x, weight(payload, 6, 8)) for _ in range(2))
    return payload.text(payload.binary("mul", payload.unary("tanh", gate), up))


def attention() -> str:
    """Two heads of a batch of one; queries, keys and values are parts of one linear layer."""
    payload = PayloadText()
    qkv = linear(payload, payload.argument(5, 8), 24)
    parts = [payload.sliced(qkv, [0, at], [5, 8]) for at in (0, 8, 16)]
    heads = [
        payload.line((5, 2, 4), f"tensor.expand_shape {each.name} [[0], [1, 2]] output_shape [5, 2, 4] : "
                     f"{each.type} into tensor<5x2x4xf32>")
        for each in parts
    ]  # fmt: skip
    q, v = (payload.transpose(each, (1, 0, 2)) for each in (heads[0], heads[2]))
    scores = payload.matmul(q, payload.transpose(heads[1], (1, 2, 0)))
    mixed = payload.matmul(payload.softmax(scores), v)
    back = payload.transpose(mixed, (1, 0, 2))
    rows = payload.line(
        (5, 8), f"tensor.collapse_shape {back.name} [[0], [1, 2]] : {back.type} into tensor<5x8xf32>"
    )
    return payload.text(linear(payload, rows, 8))


def convolution() -> str:
    """Two convolutions with padding between them, a bias in the first one's initial values."""
    payload = PayloadText()
    x = payload.argument(1, 3, 6, 6)
    zeros = payload.filled((1, 3, 6, 6), "%zero")
    value = _convolved(payload, x, _for_each_filter(payload, weight(payload, 3)))
    value = _convolved(payload, value, zeros)
    return payload.text(payload.binary("add", value, x))


def _convolved(payload: PayloadText, value: Tensor, init: Tensor) -> Tensor:
    """A padded convolution of three by three, and relu."""
    padded, filters = payload.padded(value, [0, 0, 1, 1], [0, 0, 1, 1]), weight(payload, 3, 3, 3, 3)
    ones = "dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>"
    result = payload.line(
        (1, 3, 6, 6),
        f"linalg.conv_2d_nchw_fchw {{{ones}}} ins({padded.name}, {filters.name} : {padded.type}, "
        f"{filters.type}) outs({init.name} : {init.type}) -> {init.type}",
    )
    return payload.unary("relu", result)


def _for_each_filter(payload: PayloadText, bias: Tensor) -> Tensor:
    empty = payload.line((1, 3, 6, 6), "tensor.empty() : tensor<1x3x6x6xf32>")
    return payload.line(
        (1, 3, 6, 6),
        f"linalg.broadcast ins({bias.name} : {bias.type}) outs({empty.name} : {empty.type}) "
        "dimensions = [0, 2, 3]",
    )


def reshaped_after_a_matmul() -> str:
    payload = PayloadText()
    flat = linear(payload, payload.argument(6, 4), 8)
    split = payload.line((2, 3, 8), f"tensor.expand_shape {flat.name} [[0, 1], [2]] output_shape [2, 3, 8] : "
                         f"{flat.type} into tensor<2x3x8xf32>")  # fmt: skip
    return payload.text(payload.unary("tanh", split))


def one_b_for_a_batch() -> str:
    payload = PayloadText()
    x, w = payload.argument(2, 3, 4), weight(payload, 4, 6)
    empty = payload.line((2, 4, 6), "tensor.empty() : tensor<2x4x6xf32>")
    batch = payload.line(
        (2, 4, 6),
        f"linalg.broadcast ins({w.name} : {w.type}) outs({empty.name} : {empty.type}) dimensions = [0]",
    )
    return payload.text(payload.matmul(x, batch))


def transposed_b() -> str:
    """Products whose B lies as n x k, as torch has its weights, and one of a B without a batch."""
    payload = PayloadText()
    x, w = payload.argument(4, 6), weight(payload, 8, 6)
    zeros = payload.filled((4, 8), "%zero")
    maps = ", ".join(f"affine_map<(m, n, k) -> ({each})>" for each in ("m, k", "n, k", "m, n"))
    types = f"{x.type}, {w.type}"
    result = payload.line(
        (4, 8),
        f"linalg.matmul indexing_maps = [{maps}] ins({x.name}, {w.name} : {types}) "
        f"outs({zeros.name} : {zeros.type}) -> {zeros.type}",
    )
    return payload.text(payload.unary("relu", result))


def broadcast_b() -> str:
    payload = PayloadText()
    x, w = payload.argument(2, 4, 6), weight(payload, 6, 8)
    zeros = payload.filled((2, 4, 8), "%zero")
    maps = ", ".join(f"affine_map<(b, m, n, k) -> ({each})>" for each in ("b, m, k", "k, n", "b, m, n"))
    return payload.text(
        payload.line(
            (2, 4, 8),
            f"linalg.batch_matmul indexing_maps = [{maps}] ins({x.name}, {w.name} : {x.type}, {w.type}) "
            f"outs({zeros.name} : {zeros.type}) -> {zeros.type}",
        )
    )


def overwritten() -> str:
    """A part is inserted into a value that is read again afterwards, and whose parts are, too."""
    payload = PayloadText()
    x = payload.argument(4, 6)
    first = payload.unary("relu", x)
    part = payload.sliced(payload.unary("tanh", x), [0, 0], [2, 3])
    inserted = payload.inserted(part, first, [1, 1])
    rows = payload.unary("square", x)
    both = payload.concatenated([rows, x], 0)
    other = payload.inserted(part, both, [2, 2])
    return payload.text(inserted, payload.unary("exp", first), other, payload.unary("exp", rows))


def layer_norm() -> str:
    payload = PayloadText()
    x = payload.argument(5, 8)
    centred = payload.by_row("sub", x, payload.reduced("sum", x))
    norm = payload.unary("exp", payload.reduced("sum", payload.unary("square", centred)))
    scaled = payload.binary("mul", payload.by_row("div", centred, norm), weight(payload, 8))
    return payload.text(scaled)


def moved() -> str:
    """Nothing is computed: an argument returned, a transpose, a concatenation, a constant."""
    payload = PayloadText()
    x = payload.argument(3, 4)
    both = payload.concatenated([x, payload.transpose(x, (0, 1))], 0)
    return payload.text(x, payload.transpose(x, (1, 0)), both, payload.filled((2, 2), "%least"))


CASES: dict[str, tuple[Callable[[], str], str]] = {
    "mlp": (mlp, "contraction contraction"),
    "gated": (gated, "contraction"),
    "attention": (attention, "contraction elementwise contraction rows contraction contraction"),
    "convolution": (convolution, "elementwise convolution convolution"),
    "reshaped_after_a_matmul": (reshaped_after_a_matmul, "contraction"),
    "one_b_for_a_batch": (one_b_for_a_batch, "contraction"),
    "transposed_b": (transposed_b, "contraction"),
    "broadcast_b": (broadcast_b, "loops"),
    "overwritten": (overwritten, " ".join(["elementwise"] * 10)),
    "layer_norm": (layer_norm, "rows"),
    "moved": (moved, "elementwise elementwise elementwise elementwise elementwise"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_payload_becomes_the_expected_kinds_of_fusions(name: str) -> None:
    make, kinds = CASES[name]
    assert " ".join(fusion.kind for fusion in formed(make()).program.fusions) == kinds


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CASES)
def test_fusions_compute_what_the_payload_computes(name: str) -> None:
    text = CASES[name][0]()
    program = formed(text)
    whole, fusions = host_function(text), FusedFunction(program)
    for _ in range(2):
        arguments = [RNG.standard_normal(each.shape).astype(np.float32) for each in program.program.arguments]
        expected = whole(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(fusions(*arguments), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_text_has_no_weights_and_init_transposes_them() -> None:
    program = formed(mlp())
    assert sorted(array.shape for array in program.weights) == [(8,), (8,), (8, 6), (8, 8)]
    assert "linalg.matmul" not in program.program.init
    assert program.program.init.count("linalg.generic") == 2
    texts = [program.program.init, *(fusion.text for fusion in program.program.fusions)]
    assert not any("dense_resource" in text for text in texts)


SHAPES = ((6, (2, 3)), (6, (2, 3)), (2, (2,)))
INIT = text_beside(__file__, "INIT")


def test_what_weights_decide_is_computed_in_parts_that_share_nothing_but_free_operations() -> None:
    with transform.new_context(), ir.Location.unknown():
        first, kept, both = init_parts(INIT)
        again, *_ = init_parts(INIT.replace("@init(%a", "@init(%x").replace("ins(%a", "ins(%x"))
    assert [(part.inputs, part.results) for part in (first, kept, both)] == [
        *(((0,), (0,)), ((2,), (1,)), ((1,), (2, 3)))
    ]
    assert kept.text == ""
    assert again.text == first.text  # compiled once
    assert "absf" not in first.text
    assert both.text.count("linalg.transpose") == 1


def test_the_parts_of_init_give_its_results_in_order() -> None:
    arrays = tuple(np.arange(size, dtype=np.float32).reshape(shape) - 2 for size, shape in SHAPES)
    program = FusedProgram((), (), (), (), INIT)
    a, b, c = arrays
    for found, expected in zip(initialized(program, arrays), (a.T, c, b.T, abs(b.T)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_weights_that_are_taken_as_they_are_need_no_init() -> None:
    program = formed(gated())
    assert program.program.init == ""
    assert [array.shape for array in program.weights] == [(6, 8), (6, 8)]


def test_gate_and_up_are_one_fusion_of_two_contractions() -> None:
    (fusion,) = formed(gated()).program.fusions
    assert fusion.text.count("linalg.matmul {contraction}") == 2
    assert fusion.text.count("{tuner.weight}") == 2
    assert fusion.text.count("{root}") == 1
    assert fusion.ops == ("linalg.matmul", "linalg.matmul", "math.tanh", "arith.mulf")


def test_heads_of_an_attention_are_views_and_only_keys_are_transposed() -> None:
    program = formed(attention()).program
    transposes = [fusion for fusion in program.fusions if fusion.ops == ("linalg.transpose",)]
    assert len(transposes) == 1
    queries, _ = program.fusions[2].inputs
    assert queries.strides == (4, 24, 1)
    (mixed,) = program.fusions[4].outputs
    assert (mixed.type.shape, mixed.strides) == ((2, 5, 4), (4, 8, 1))


def test_a_producer_writes_inside_of_the_padding_of_its_reader() -> None:
    program = formed(convolution()).program
    padded = [number for number, each in enumerate(program.buffers) if each.padding is not None]
    assert [program.buffers[number].padding for number in padded] == [0.0, 0.0]
    (inside,) = program.fusions[1].outputs
    assert inside.buffer in padded
    assert inside.offset == 9
    assert program.fusions[2].inputs[0].buffer in padded


def test_results_are_written_where_the_caller_wants_them() -> None:
    program = formed(mlp()).program
    (last,) = program.fusions[-1].outputs
    assert program.buffers[last.buffer].owner == RESULT
    assert [buffer.owner for buffer in program.buffers].count(TEMPORARY) == 1


def test_a_number_for_each_row_is_computed_once_for_each_row() -> None:
    (fusion,) = formed(layer_norm()).program.fusions
    assert fusion.text.count("math.exp") == 1
    power = next(line for line in fusion.text.splitlines() if "math.exp" in line)
    generic = fusion.text[: fusion.text.index(power)].rsplit("linalg.generic", 1)[1]
    assert 'iterator_types = ["parallel"]' in generic


def test_identical_fusions_have_one_text_whatever_surrounds_them() -> None:
    def keys(program: FusedProgram) -> list[str]:
        return [hashlib.sha256(fusion.text.encode()).hexdigest() for fusion in program.fusions]

    payload = PayloadText()
    x = payload.unary("tanh", payload.sliced(payload.argument(9, 8), [1, 0], [4, 8]))
    other = formed(payload.text(x, linear(payload, x, 8)))
    assert keys(formed(mlp()).program)[1] == keys(other.program)[-1]
    assert keys(formed(mlp()).program) == keys(formed(mlp()).program)


GATHER = text_beside(__file__, "GATHER")


def test_what_no_schedule_is_for_is_a_fusion_of_loops_with_its_reason() -> None:
    program = formed(GATHER)
    (fusion,) = program.program.fusions
    assert (fusion.kind, fusion.reason) == ("loops", "no schedule is for elements of type i64")
    rows, table = np.array([8, 0, 3]), RNG.standard_normal((9, 4)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(rows, table)[0], table[rows])


MAXIMUM = text_beside(__file__, "MAXIMUM")


def test_indices_of_a_maximum_that_nobody_uses_are_dropped() -> None:
    program = formed(MAXIMUM)
    (fusion,) = program.program.fusions
    assert fusion.kind == "rows"
    assert "i64" not in fusion.text
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(x)[0], x.max(1))


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16", "i64", "i32", "i8", "i1"])
def test_weights_of_each_element_type_are_read(element: str) -> None:
    numbers = {"f": "1.0, -2.5, 3.0", "b": "1.0, -2.5, 3.0", "i": "1, -2, 3"}[element[0]]
    numbers = "true, false, true" if element == "i1" else numbers
    text = f"""func.func @main(%x: tensor<3x{element}>) -> (tensor<3x{element}>, tensor<3x{element}>) {{
      %w = arith.constant dense<[{numbers}]> : tensor<3x{element}>
      return %x, %w : tensor<3x{element}>, tensor<3x{element}>
    }}"""
    program = formed(text)
    (found,) = program.weights
    wanted = [True, False, True] if element == "i1" else [float(each) for each in numbers.split(",")]
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    assert [buffer.type.element for buffer in program.program.buffers if buffer.owner == WEIGHT] == [element]


REFUSED = {
    "a dynamic size": ("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }",
                       r"argument 0: tensor<\?xf32> has a dynamic size"),
    "a memref": ("func.func @main(%x: memref<4xf32>) { return }", "argument 0: memref<4xf32> is no tensor"),
    "a number": ("func.func @main(%x: f32) -> f32 { return %x : f32 }", "argument 0: f32 is no tensor"),
    "no result": ("func.func @main(%x: tensor<4xf32>) { return }", "returns nothing"),
    "complex elements": ("""func.func @main(%x: tensor<complex<f32>>) -> tensor<complex<f32>> {
       return %x : tensor<complex<f32>>
     }""",
                         "elements of an unsupported type"),
    "no elements": ("func.func @main(%x: tensor<0xf32>) -> tensor<0xf32> { return %x : tensor<0xf32> }",
                    "has no elements"),
    "a loop": ("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
       %a = arith.constant 0 : index
       %b = arith.constant 9 : index
       %s = arith.constant 1 : index
       %r = scf.for %i = %a to %b step %s iter_args(%y = %x) -> tensor<4xf32> {
         %z = arith.addf %y, %y : tensor<4xf32>
         scf.yield %z : tensor<4xf32>
       }
       return %r : tensor<4xf32>
     }""", "control flow: scf.for"),
    "several blocks": ("""func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
       %b = tensor.extract %c[] : tensor<i1>
       cf.cond_br %b, ^one, ^other
     ^one:
       return %x : tensor<4xf32>
     ^other:
       %y = arith.addf %x, %x : tensor<4xf32>
       return %y : tensor<4xf32>
     }""", "control flow: the function has several blocks"),
    "a call": ("""func.func private @other(tensor<4xf32>) -> tensor<4xf32>
     func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
       %r = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
       return %r : tensor<4xf32>
     }""", "calls that cannot be inlined"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_program_that_must_stay_whole_is_refused_with_its_reason(what: str) -> None:
    text, reason = REFUSED[what]
    refused = fuse_program(text)
    assert isinstance(refused, NotFused)
    assert re.search(reason, refused.reason)
    assert "\n" not in refused.reason


def test_a_constant_without_its_data_is_refused_with_its_name() -> None:
    constant = "%w = arith.constant dense_resource<w> : tensor<9xf32>"
    text = f"func.func @main() -> tensor<9xf32> {{\n{constant}\nreturn %w : tensor<9xf32>\n}}"
    with pytest.raises(CandidateError, match="dense_resource<w> has no data after the module"):
        fuse_program(text)


def test_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(CandidateError, match="payload: "):
        fuse_program("func.func @main() {")
