"""Memory that is easily taken for another: globals, tensors that grow in a loop, regions of blocks."""

import numpy as np
import pytest

import tuner
from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, UsageError
from tuner.mlir.effects.accesses import device_accesses
from tuner.mlir.effects.memory_effects import KernelEffects
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir


def test_a_tensor_that_grows_in_a_loop_is_no_wrong_result() -> None:
    program = tuner.compile_program(text_beside(__file__, "GROWING_LOOP"), target="cpu")
    with pytest.raises(CandidateError, match="another size in the next iteration"):
        program(np.arange(4, dtype=np.float32), 2)
    np.testing.assert_array_equal(program(np.arange(4, dtype=np.float32), 0), np.arange(4))


@pytest.mark.parametrize("target", ["cpu", "simulator"])
def test_a_global_that_a_kernel_names_is_that_of_the_program(target: str) -> None:
    array = np.zeros(4, np.float32)
    tuner.compile_program(text_beside(__file__, "GLOBAL_IN_A_KERNEL"), target=target)(array, 5.0)
    np.testing.assert_array_equal(array, np.full(4, 5))


def test_memory_that_several_blocks_use_is_not_freed_in_the_first() -> None:
    with pytest.raises(CandidateError, match="found memory that several blocks use and that nobody frees"):
        tuner.compile_program(text_beside(__file__, "SEVERAL_BLOCKS"), target="cpu")


def test_a_function_that_would_call_itself_in_place_of_the_c_library_is_refused() -> None:
    text = "func.func @NAME(%x: f64) -> f64 { %y = math.exp %x : f64 return %y : f64 }"
    with pytest.raises(UsageError, match="found the name 'exp' of a function of C that it calls"):
        tuner.compile_program(text.replace("NAME", "exp"), target="cpu")
    program = tuner.compile_program(text.replace("NAME", "raised"), target="cpu")
    np.testing.assert_allclose(program(1.0), np.exp(1.0), rtol=1e-15)


def test_a_kernel_may_touch_anything_by_a_global_of_its_module_unless_that_is_constant() -> None:
    with parsed(text_beside(__file__, "GLOBALS_OF_KERNELS")) as module:
        effects = KernelEffects(module)
        launches = walk(module, "gpu.launch_func")
        assert [device_accesses(each, effects).is_unknown for each in launches] == [True, False]


def test_memory_of_an_iteration_in_a_kernel_that_a_condition_forwards_is_refused() -> None:
    with pytest.raises(
        CandidateError, match=r"memory of one iteration of a loop that scf\.condition forwards"
    ):
        tuner.compile_program(text_beside(__file__, "FORWARDED_BY_A_CONDITION"), target="simulator")
