"""Host code and kernels of a program are hashed apart, so that a difference says where it is."""

from benchmarks.golden_hashes.programs import PROGRAMS, without_modules

HOST = r"""  gpu.binary @one  [#gpu.object<#nvvm.target<chip = "sm_90">, code = {}, "//\0A.version 8.4\00">]
  gpu.binary @two  [#gpu.object<#nvvm.target<chip = "sm_90", O = "3">, assembly = "a \22word\22">]
  llvm.func @main()
"""


def test_the_code_of_kernel_modules_is_no_part_of_the_host() -> None:
    host, modules = without_modules(HOST)
    assert modules == {"one": "//\n.version 8.4", "two": 'a "word"'}
    assert "version" not in host
    assert "llvm.func @main()" in host


def test_every_payload_is_there() -> None:
    assert [program.file for program in PROGRAMS if not program.path.is_file()] == []
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == 12
