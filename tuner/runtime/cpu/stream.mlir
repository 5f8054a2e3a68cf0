// The loop that measures bytes/s, see roofline.py: adds up memory in order, 256 bytes per iteration. LLVM splits the
// vector into registers of the processor's width.
!line = vector<64xf32>
module {
  llvm.func @stream(%memory: !llvm.ptr, %iterations: i64, %sink: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %none = llvm.mlir.constant(dense<0.0> : !line) : !line
    llvm.br ^loop(%zero, %none : i64, !line)
  ^loop(%iteration: i64, %sum: !line):
    %at = llvm.getelementptr %memory[%iteration] : (!llvm.ptr, i64) -> !llvm.ptr, !line
    %read = llvm.load %at {alignment = 64 : i64} : !llvm.ptr -> !line
    %total = llvm.fadd %sum, %read : !line
    %next = llvm.add %iteration, %one : i64
    %more = llvm.icmp "slt" %next, %iterations : i64
    llvm.cond_br %more, ^loop(%next, %total : i64, !line), ^end
  ^end:
    llvm.store %sum, %sink {alignment = 64 : i64} : !line, !llvm.ptr
    llvm.return
  }
}
