"""Weights as torch-mlir exports them: ``dense_resource``, with the data behind the module."""

from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.host_function import HostFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

TARGETS = {"cpu": TargetName("cpu"), "simulator": TargetName("simulator", "sm_90")}
DTYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8"}
QUOTED = '"odd name, with } and #-}"'
ALIGNMENT_BYTES = (4).to_bytes(4, "little")  # with which the data begin


def program(body: str, **constants: Any) -> str:
    data = {name: (ALIGNMENT_BYTES + array.tobytes()).hex().upper() for name, array in constants.items()}
    listed = ",\n".join(f'      {name}: "0x{digits}"' for name, digits in data.items())
    return f"""module {{
{body}
}}

{{-#
  dialect_resources: {{
    builtin: {{
{listed}
    }}
  }}
#-}}
"""


def plus_constant(name: str, element: str) -> str:
    """A sum with a constant of 37 x 5."""
    text = text_beside(__file__, "PLUS_CONSTANT").replace("CONSTANT", name).replace("ELEMENT", element)
    return text.replace("ADD", "addi" if element.startswith("i") else "addf")


def times_constant(size: int) -> str:
    """A matmul with a constant that is turned, then with the constant itself."""
    return text_beside(__file__, "TIMES_CONSTANT").replace("SIZE", str(size))


def ran(target: str, text: str, *arguments: Any) -> Any:
    code = compiler_of(TARGETS[target]).compile(text).code
    if target == "cpu":
        return HostFunction(code)(*arguments)
    device = SimulatedDevice()
    function = DeviceFunction(code, device)
    try:
        return function(*arguments)
    finally:
        function.close()
        assert not device.reports


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", DTYPES)
def test_constants_of_each_type_are_those_of_the_file(target: str, element: str) -> None:
    rng, dtype = np.random.default_rng(1), DTYPES[element]
    constant, argument = ((rng.standard_normal((37, 5)) * 9).astype(dtype) for _ in range(2))
    name = f"torch_tensor_37_5_torch.{dtype}"
    text = program(plus_constant(name, element), **{name: constant})
    np.testing.assert_array_equal(ran(target, text, argument), constant + argument)


@pytest.mark.parametrize("target", TARGETS)
def test_a_name_may_have_any_characters(target: str) -> None:
    constant, argument = np.arange(185.0).reshape(37, 5), np.ones((37, 5))
    text = program(plus_constant(QUOTED, "f64"), **{QUOTED: constant})
    np.testing.assert_array_equal(ran(target, text, argument), constant + 1)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "size"), [("cpu", 544), ("simulator", 40)])  # 544: more than a megabyte
def test_a_weight_is_multiplied_with_as_it_is_and_turned(target: str, size: int) -> None:
    rng = np.random.default_rng(2)
    weight = (rng.standard_normal((size, size)) / size**0.5).astype(np.float32)
    argument = rng.standard_normal((4, size)).astype(np.float32)
    text = program(times_constant(size), **{f"torch_tensor_{size}_{size}_torch.float32": weight})
    expected = argument.astype(np.float64) @ weight.T @ weight
    np.testing.assert_allclose(ran(target, text, argument), expected, atol=1e-4)


GLOBAL = text_beside(__file__, "GLOBAL")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("body", "name", "allowed"),
    [(plus_constant("w", "f32"), "w", 740), (plus_constant(QUOTED, "i8"), QUOTED, 185), (GLOBAL, "w", 16)],
    ids=["tensor", "quoted", "memref"],
)
def test_a_constant_with_data_of_another_size_is_refused_with_both_sizes(
    target: str, body: str, name: str, allowed: int
) -> None:
    for size in (0, 1, allowed - 1, allowed + 1):
        text = program(body, other_w=np.zeros(9), **{name: np.zeros(size, np.int8)})
        line = (
            f"^payload: the data of dense_resource<{name}>: found {size} bytes, allowed {allowed} of tensor"
        )
        with pytest.raises(UsageError, match=line):
            compiler_of(TARGETS[target]).compile(text)


@pytest.mark.parametrize("name", ["__elided__", "torch_tensor_37_5_torch.float32"])
def test_a_constant_whose_data_are_left_out_is_refused_with_its_name(name: str) -> None:
    found = rf"^payload: dense_resource<{name}> has no data .*large_elements_limit=None$"
    for text in (plus_constant(name, "f32"), program(plus_constant(name, "f32"), other=np.zeros(1))):
        with pytest.raises(UsageError, match=found):
            compiler_of(TARGETS["cpu"]).compile(text)
