import pytest

from tests.targets.gpu.machine_code.listings import FFMA, LDS, NESTED, Line, kernel_of, listing, loop
from tuner.targets.gpu.machine_code.listing import MachineInstruction, read_kernels


def test_an_instruction_has_its_name_its_words_and_its_control_code() -> None:
    wait = Line("@!P0 HMMA.16816.F32 R4, R8.reuse, R12, R4", 8, waits=(0, 5))
    copy, product = kernel_of(LDS, wait).code
    assert (copy.name, copy.mnemonic, copy.words, copy.sets, copy.waits) == ("LDS.128", "LDS", 4, 0, ())
    assert (product.text, product.stall_cycles) == ("HMMA.16816.F32 R4, R8.reuse, R12, R4", 8)
    assert (product.sets, product.waits) == (None, (0, 5))
    assert product.sources == ((8, True), (12, False), (4, False))


def test_widths_are_told_from_the_name() -> None:
    names = ("LDG.E.128.CONSTANT R0", "LDS.64 R0", "STS R0", "LDS.U.8 R0")
    assert [MachineInstruction(0, name).words for name in names] == [4, 2, 1, 1]


def test_loops_are_what_branches_back_close() -> None:
    assert NESTED.loops() == ((2, 5), (1, 7))  # the endless branch to itself at the end is none


def test_a_jump_back_from_behind_the_end_is_no_loop() -> None:
    again = Line("BRA `(.L_x_0)", 5)  # a wait outside of the loop has succeeded at last
    waiting = kernel_of(".L_x_0", FFMA, *loop(".L_x_1", FFMA), Line("EXIT"), again)
    assert waiting.loops() == ((1, 3),)


def test_an_instruction_without_its_second_word_is_an_error() -> None:
    with pytest.raises(AssertionError, match="allowed the high word of an instruction"):
        read_kernels(listing(FFMA).rpartition("\n")[0])
