// ----- COUNT
llvm.func @count(%counter: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %old = llvm.load %counter : !llvm.ptr -> i64
  %new = llvm.add %old, %one : i64
  llvm.store %new, %counter : i64, !llvm.ptr
  llvm.return
}
