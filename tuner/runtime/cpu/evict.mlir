// Evicts memory from all caches, see eviction.py: flushes each line of 64 bytes, then waits until it is done.
module {
  llvm.func @evict(%start: !llvm.ptr, %lines: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %line_bytes = llvm.mlir.constant(64 : i64) : i64
    llvm.br ^loop(%zero : i64)
  ^loop(%line: i64):
    %offset = llvm.mul %line, %line_bytes : i64
    %at = llvm.getelementptr %start[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    FLUSH_LINE
    %next = llvm.add %line, %one : i64
    %more = llvm.icmp "slt" %next, %lines : i64
    llvm.cond_br %more, ^loop(%next : i64), ^end
  ^end:
    FLUSHED
    llvm.return
  }
}
