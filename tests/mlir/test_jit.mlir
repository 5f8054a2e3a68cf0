// ----- SUM

module {
  llvm.func @sum(%a: i64, %b: i64) -> i64 attributes {llvm.emit_c_interface} {
    %c = llvm.add %a, %b : i64
    llvm.return %c : i64
  }
  llvm.func @store(%place: !llvm.ptr, %value: i64) attributes {llvm.emit_c_interface} {
    llvm.store %value, %place : i64, !llvm.ptr
    llvm.return
  }
}
// ----- WAIT

    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^again
  ^again:
    %seen = llvm.load %p atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
    %is_set = llvm.icmp "eq" %seen, %one : i64
    llvm.cond_br %is_set, ^done, ^again
  ^done:
