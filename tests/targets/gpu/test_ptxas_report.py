import pytest

from tuner.targets.gpu.ptxas_report import KernelReport, first_fault, read_report

REPORT = """ptxas warning : Unsupported .version 9.9; current version is '9.0'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'reduce' for 'sm_90'
ptxas info    : Function properties for reduce
    64 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers, 64 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 5.121 ms
ptxas info    : (C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas info    : Compiling entry function 'matmul' for 'sm_90'
ptxas info    : Function properties for matmul
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 234 registers, used 1 barriers, 376 bytes cmem[0]
"""
BEFORE = "Unsupported .version 9.9; current version is '9.0'"
SLOW = "(C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized"


def test_every_figure_of_every_kernel_is_read() -> None:
    assert read_report(REPORT) == (
        KernelReport("reduce", 20, 0, 64, 8, 12, 1024, (BEFORE, SLOW)),
        KernelReport("matmul", 234, 1, 0, 0, 0, 0, (BEFORE,)),
    )


def test_a_report_of_another_form_is_not_taken_for_zero_registers() -> None:
    with pytest.raises(
        ValueError, match=r"^ptxas -v: found no registers of matmul, allowed 'Used N registers'"
    ):
        read_report(REPORT.replace("Used 234 registers", "234 registers"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            (
                "ptxas /folder/kernel.ptx, line 4; error   : Arguments mismatch for instruction 'add'\n"
                "ptxas fatal   : Ptx assembly aborted due to errors\n"
            ),
            "line 4: Arguments mismatch for instruction 'add'",
        ),
        (
            "ptxas info    : 0 bytes gmem\nptxas fatal   : SM version specified by .target is higher\n",
            "SM version specified by .target is higher",
        ),
        ("Segmentation fault\ncore dumped\n", "Segmentation fault"),
        ("", "no message"),
    ],
)
def test_the_first_fault_is_told_without_the_temporary_file(text: str, fault: str) -> None:
    assert first_fault(text) == fault
