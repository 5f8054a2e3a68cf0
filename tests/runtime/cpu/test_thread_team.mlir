// ----- CODE
module {
  llvm.func @count(%counter: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %old = llvm.load %counter : !llvm.ptr -> i64
    %new = llvm.add %old, %one : i64
    llvm.store %new, %counter : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @copy_next(%place: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %other = llvm.load %place : !llvm.ptr -> !llvm.ptr
    %mine = llvm.getelementptr %place[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %one = llvm.mlir.constant(1 : i64) : i64
    %old = llvm.load %other : !llvm.ptr -> i64
    %new = llvm.add %old, %one : i64
    llvm.store %new, %mine : i64, !llvm.ptr
    llvm.return
  }
}
// ----- COPY_NUMBER
llvm.func @copy_number(%numbers: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %next = llvm.getelementptr %numbers[4] : (!llvm.ptr) -> !llvm.ptr, i8
  %number = llvm.load %numbers : !llvm.ptr -> f32
  llvm.store %number, %next : f32, !llvm.ptr
  llvm.return
}
// ----- COUNT_PROGRAM
llvm.func @count(%counter: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %old = llvm.load %counter : !llvm.ptr -> i64
  %new = llvm.add %old, %one : i64
  llvm.store %new, %counter : i64, !llvm.ptr
  llvm.return
}
