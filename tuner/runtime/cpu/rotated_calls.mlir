// A call of a function with the next of several arguments. `state`: calls so far, number of arguments - 1 (of a power of
// two), address of the function, addresses of its arguments; 8 bytes each.
module {
  llvm.func @rotated_call(%state: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %mask_at = llvm.getelementptr %state[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %function_at = llvm.getelementptr %state[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %table = llvm.getelementptr %state[3] : (!llvm.ptr) -> !llvm.ptr, i64
    %calls = llvm.load %state : !llvm.ptr -> i64
    %mask = llvm.load %mask_at : !llvm.ptr -> i64
    %function = llvm.load %function_at : !llvm.ptr -> !llvm.ptr
    %place = llvm.and %calls, %mask : i64
    %argument_at = llvm.getelementptr %table[%place] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %argument = llvm.load %argument_at : !llvm.ptr -> !llvm.ptr
    %more = llvm.add %calls, %one : i64
    llvm.store %more, %state : i64, !llvm.ptr
    llvm.call %function(%argument) : !llvm.ptr, (!llvm.ptr) -> ()
    llvm.return
  }
}
