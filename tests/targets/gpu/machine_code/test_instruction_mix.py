from tuner.targets.gpu.machine_code.instruction_mix import assembly_mix, instruction_mix

PTX = """.version 8.0
.visible .entry kernel(
        .param .u64 a
)
{
        .reg .b32 %r<4>;
        ld.param.u64 %rd1, [a];
        ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
$L__BB0_1:
        fma.rn.f32 %f5, %f1, %f2, %f3;
        fma.rn.f32 %f6, %f1, %f2, %f3;
        add.s32 %r1, %r1, 1;
        @%p1 bra $L__BB0_1;
        ret;
}
"""
LLVM = """llvm.func @f(%arg0: !llvm.ptr) {
    %0 = llvm.mlir.constant(4 : i64) : i64
    %1 = llvm.load %arg0 : !llvm.ptr -> f32
    %2 = llvm.intr.fmuladd(%1, %1, %1) : (f32, f32, f32) -> f32
    llvm.store %2, %arg0 : f32, !llvm.ptr
    llvm.return
}
"""


def test_instructions_of_ptx_are_counted_without_types_and_guards() -> None:
    assert instruction_mix(PTX) == (
        ("fma.rn", 2),
        ("add", 1),
        ("bra", 1),
        ("ld.global", 1),
        ("ld.param", 1),
        ("ret", 1),
    )


def test_operations_of_llvm_are_counted_without_constants() -> None:
    assert instruction_mix(LLVM) == (("intr.fmuladd", 1), ("load", 1), ("return", 1), ("store", 1))


def test_assembly_is_counted_without_names_of_functions_and_prefixes() -> None:
    x86 = "<matmul>:\n  vxorps %xmm0,%xmm0,%xmm0\n  data16 cs nopw 0x0(%rax)\n  vxorps %xmm1,%xmm1,%xmm1\n"
    assert assembly_mix(x86) == (("vxorps", 2), ("nopw", 1))
    assert assembly_mix("<k>:\n  HMMA.16816.F32 R4, R8, R12, R4\n") == (("HMMA.16816.F32", 1),)
