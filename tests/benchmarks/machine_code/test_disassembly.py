"""What ``nvdisasm -c -hex`` prints becomes instructions, labels and loops."""

import pytest

from benchmarks.machine_code.disassembly import Kernel, read_kernels


def word(stall_cycles: int) -> str:
    return f"{stall_cycles << 41 | 7:016x}"


def listing(*lines: tuple[str, int] | str) -> str:
    """Returns the text of a kernel: labels, and instructions with their stall counts."""
    text, address = [".section .text.k", ".text.k:"], 0
    for line in lines:
        if isinstance(line, str):
            text.append(f"{line}:")
        else:
            instruction, stall_cycles = line
            text.append(f"        /*{address:04x}*/          {instruction} ;   /* 0x0123456789abcdef */")
            text.append(f"                                   /* 0x{word(stall_cycles)} */")
            address += 16
    return "\n".join(text)


LOOPS = listing(
    ("MOV R1, c[0x0][0x28]", 1),
    ".L_x_0",
    ("@!P0 FFMA R0, R1, R2, R0", 4),
    ("@P1 BRA `(.L_x_0)", 5),
    ".L_x_1",
    ("HMMA.16816.F32 R4, R8, R12, R4", 8),
    ("HMMA.16816.F32 R4, R8, R14, R4", 15),
    ("BRA `(.L_x_1)", 5),
    ("BRA `(.L_x_2)", 5),
    ".L_x_2",
    ("EXIT", 5),
)


def only(text: str) -> Kernel:
    (kernel,) = read_kernels(text)
    return kernel


def test_instructions_have_names_and_stall_counts() -> None:
    kernel = only(LOOPS)
    assert kernel.name == "k"
    assert [(each.name, each.stall_cycles) for each in kernel.code[:3]] == [
        ("MOV", 1),
        ("FFMA", 4),
        ("BRA", 5),
    ]
    assert kernel.code[4].text == "HMMA.16816.F32 R4, R8, R14, R4"
    assert dict(kernel.labels) == {".L_x_0": 16, ".L_x_1": 48, ".L_x_2": 112}


def test_the_main_loop_has_most_products() -> None:
    assert only(LOOPS).main_loop() == (3, 6)


def test_of_loops_with_as_many_products_the_inner_one_is_the_main_loop() -> None:
    nested = listing(
        ".L_x_0",
        ("MOV R1, R2", 1),
        ".L_x_1",
        ("FFMA R0, R1, R2, R0", 4),
        ("BRA `(.L_x_1)", 5),
        ("BRA `(.L_x_0)", 5),
    )
    assert only(nested).main_loop() == (1, 3)


@pytest.mark.parametrize("lines", [[("EXIT", 5)], [".L_x_0", ("MOV R1, R2", 1), ("BRA `(.L_x_0)", 5)]])
def test_without_a_loop_that_multiplies_there_is_none(lines: list[tuple[str, int] | str]) -> None:
    assert only(listing(*lines)).main_loop() is None


def test_an_instruction_without_its_second_word_is_an_error() -> None:
    with pytest.raises(AssertionError, match="allowed the high word of an instruction"):
        read_kernels(listing(("EXIT", 5)).rpartition("\n")[0])
