// ----- LOOP
module {
  llvm.mlir.global private constant @factors(dense<[2.0, 3.0]> : tensor<2xf32>) : !llvm.array<2 x f32>
  llvm.func @expf(f32) -> f32
  llvm.func @fusion(ARGUMENTS) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %size = llvm.mlir.constant(SIZE : i64) : i64
    llvm.br ^head(%zero : i64)
  ^head(%i: i64):
    %more = llvm.icmp "slt" %i, %size : i64
    llvm.cond_br %more, ^body, ^done
  ^body:
LOADS
    VALUE
    %to = llvm.getelementptr %pRESULT[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %value, %to : f32, !llvm.ptr
    %next = llvm.add %i, %one : i64
    llvm.br ^head(%next : i64)
  ^done:
    llvm.return
  }
}
// ----- LOAD
    %at_NUMBER = llvm.getelementptr %pNUMBER[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %vNUMBER = llvm.load %at_NUMBER : !llvm.ptr -> f32
