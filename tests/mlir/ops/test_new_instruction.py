"""An instruction is one class: matmuls, fusions, quantized weights and convolutions multiply by it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pytest

from tests import byte_fusion_texts
from tests.fusion_runs import as_problem, compiled, draw_inputs, run
from tests.mlir.convolution_texts import Convolution
from tests.mlir.ops.block_runs import payload, require_product
from tests.mlir.ops.one_op import apply, line_of
from tests.mlir.ops.quantized import Case, arrays_of, multiplied
from tests.mlir.ops.test_vnni_block import drawn
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError
from tuner.core.fusions import CONTRACTION, CONVOLUTION
from tuner.core.machine import variables_of
from tuner.core.quantization import WeightFormat
from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.instructions import INSTRUCTIONS, Products
from tuner.mlir.ir.building import piece, value
from tuner.mlir.ir.dot_products import as_type
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.strategy import Binder, load_strategy

NAME = "planar_dot"
FOURS = 4
BY_LANES = replace(describe_machine(), isa="neon", has_dotprod=True)
Knobs = dict[str, int | str]


@final
@dataclass(frozen=True, kw_only=True)
class PlanarProducts(Products):
    """A made-up dot product of signed bytes: registers have all first bytes of sums, then all second ones.

    What the processor would do is vector code here.
    """

    @classmethod
    def of(cls, lanes: int) -> "PlanarProducts":
        return cls(register=f"vector<{lanes}xi32>", lanes=lanes, sum_element="i32", element="i8")

    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        left, right = self._planes(of_a[0]), self._planes(of_b)
        for plane in range(FOURS):
            factors = [
                value("arith.extsi", self.sums, piece(planes, plane * self.lanes, self.lanes))
                for planes in (left, right)
            ]
            before = value("arith.addi", self.sums, before, value("arith.muli", self.sums, *factors))
        return before

    def _planes(self, k_groups: Value) -> Value:
        """Creates the registers' own layout: byte ``plane`` of each sum, one plane after the other."""
        bytes_ = as_type(k_groups, ir.VectorType.get([FOURS * self.lanes], ir.IntegerType.get_signless(8)))
        order = [FOURS * lane + plane for plane in range(FOURS) for lane in range(self.lanes)]
        return value("vector.shuffle", bytes_.type, bytes_, bytes_, mask=ir.DenseI64ArrayAttr.get(order))


@pytest.fixture(autouse=True)
def has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INSTRUCTIONS, NAME, PlanarProducts.of)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("lanes", [4, 8])
def test_a_matmul_multiplies_by_it(lanes: int, layout: str) -> None:
    script = line_of("vnni_block", tile_m=3, tile_n=16, lanes=lanes, instruction=NAME)
    require_product(script, (7, 21, 35), drawn, layout=layout, emulates=False)


def require_fusion(kind: str, text: str, strategy: str, knobs: Knobs, output: str) -> None:
    """A strategy's script, with the instruction as an attribute of its op, must compute the reference."""
    problem = as_problem(kind, text)
    binder = Binder(
        (load_strategy(strategy),), problem, variables_of(problem, BY_LANES, threads=1), threads=1
    )
    script = binder.bind(Candidate.of(strategy, knobs)).text
    named = script.replace("lanes = 4 : i64", f'lanes = 4 : i64, instruction = "{NAME}"')
    assert named != script
    inputs = draw_inputs(text, np.random.default_rng(0))
    expected = evaluate(text, inputs)
    code = compiled(text, named)
    assert any(packing is not None for packing in code.packings)
    assert "sdot" not in code.llvm_text
    (made,) = run(code, inputs, expected, output)
    assert worst_error(expected[0], made) <= 1


@pytest.mark.parametrize("epilogue", ["none", "columns"])
def test_a_fusion_multiplies_by_it_and_takes_a_packed_weight(epilogue: str) -> None:
    knobs: Knobs = {"tile_m": 2, "tile_n": 8, "block_m": 0, "block_n": 0, "loop_order": "ji", "ahead": 0}
    text = byte_fusion_texts.product(5, 20, 37, epilogue)
    require_fusion(CONTRACTION, text, "contraction_cpu_vnni", knobs, "i32" if epilogue == "none" else "f32")


@pytest.mark.parametrize("name", ["conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf"])
@pytest.mark.parametrize("channels", [3, 8])
def test_a_convolution_multiplies_by_it(channels: int, name: str) -> None:
    knobs: Knobs = {"along": "filters", "tile_f": 8, "tile_p": 4, "block_p": 0, "block_c": 0, "unroll_c": 1}
    text = Convolution(f"linalg.{name}", channels=channels, filters=16, element="i8").text()
    knobs |= {"loop_order": "fp", "prefetch": 0}
    require_fusion(CONVOLUTION, text, "convolution_cpu", knobs, "i32")


@pytest.mark.parametrize("scheme", ["dots", "bytes"])
@pytest.mark.parametrize("weights", ["i4-g32-f16-zp-a8row", "i8-g32-f16-a8group", "i8-channel-f16-a8row"])
def test_quantized_weights_are_multiplied_by_it(weights: str, scheme: str) -> None:
    knobs: Knobs = {"scheme": scheme, "tile_m": 2, "tile_n": 16, "lanes": 8, "instruction": NAME}
    case = Case((3, 40, 64), "f32", WeightFormat.of_text(weights), "f32", knobs)
    arrays = arrays_of(case, np.random.default_rng(0))
    assert worst_error(evaluate(case.text, arrays)[0], multiplied(case, arrays)) <= 1


def test_an_unknown_instruction_and_one_of_other_elements_are_refused() -> None:
    for name, said in (("vpdp", "found vpdp, allowed vpdpbusd"), ("bfdot", "found bfdot, allowed vpdpbusd")):
        with pytest.raises(CandidateError, match=f"instruction: {said} or .* for i8"):
            apply(line_of("vnni_block", tile_m=2, tile_n=16, instruction=name), payload(4, 16, 32, "i8"))
