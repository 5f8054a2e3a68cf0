// What a SIGSEGV does in a child process that runs kernels, see stack_overflow.py. By byte offset:
//   ucontext_t of x86-64 Linux: 16 start of the alternate stack    160 rsp at the fault    siginfo_t: 16 faulting address
//   the alternate stack's start: 0 lowest address of the thread's own stack    8 bytes of the message    16 message
module {
  llvm.func @write(i32, !llvm.ptr, i64) -> i64

  llvm.func internal @on_fault(%signal: i32, %info: !llvm.ptr, %context: !llvm.ptr) {
    %stderr = llvm.mlir.constant(2 : i32) : i32
    // the guard page, and what the kernel keeps free below a main thread's stack
    %near = llvm.mlir.constant(65536 : i64) : i64
    %below = llvm.mlir.constant(1048576 : i64) : i64
    %notes_at = llvm.getelementptr %context[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %pointer_at = llvm.getelementptr %context[160] : (!llvm.ptr) -> !llvm.ptr, i8
    %address_at = llvm.getelementptr %info[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %notes = llvm.load %notes_at : !llvm.ptr -> !llvm.ptr
    %pointer = llvm.load %pointer_at : !llvm.ptr -> i64
    %address = llvm.load %address_at : !llvm.ptr -> i64
    %lowest = llvm.load %notes : !llvm.ptr -> i64
    %end = llvm.add %lowest, %near : i64
    %before = llvm.sub %lowest, %below : i64
    %is_pointer_past = llvm.icmp "ult" %pointer, %end : i64
    %is_not_above = llvm.icmp "ult" %address, %end : i64
    %is_not_below = llvm.icmp "uge" %address, %before : i64
    %is_address_past = llvm.and %is_not_above, %is_not_below : i1
    %is_overflow = llvm.or %is_pointer_past, %is_address_past : i1
    llvm.cond_br %is_overflow, ^report, ^end
  ^report:
    %bytes_at = llvm.getelementptr %notes[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %message = llvm.getelementptr %notes[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %bytes = llvm.load %bytes_at : !llvm.ptr -> i64
    %written = llvm.call @write(%stderr, %message, %bytes) : (i32, !llvm.ptr, i64) -> i64
    llvm.br ^end
  ^end:
    llvm.return
  }

  llvm.func @fault_handler() -> !llvm.ptr attributes {llvm.emit_c_interface} {
    %handler = llvm.mlir.addressof @on_fault : !llvm.ptr
    llvm.return %handler : !llvm.ptr
  }
}
