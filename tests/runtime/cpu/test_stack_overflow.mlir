// ----- FAULTS
// takes %bytes of the stack %times; with an address, writes there instead
module {
  llvm.func @fault(%bytes: i64, %times: i64, %address: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %seven = llvm.mlir.constant(7 : i8) : i8
    %is_overflow = llvm.icmp "eq" %address, %zero : i64
    llvm.cond_br %is_overflow, ^next(%zero : i64), ^outside
  ^outside:
    %pointer = llvm.inttoptr %address : i64 to !llvm.ptr
    llvm.store volatile %seven, %pointer : i8, !llvm.ptr
    llvm.return
  ^next(%number: i64):
    %memory = llvm.alloca %bytes x i8 : (i64) -> !llvm.ptr
    llvm.store volatile %seven, %memory : i8, !llvm.ptr
    %more = llvm.add %number, %one : i64
    %is_left = llvm.icmp "slt" %more, %times : i64
    llvm.cond_br %is_left, ^next(%more : i64), ^end
  ^end:
    llvm.return
  }
}
