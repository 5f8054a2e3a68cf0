// ----- ADD_ONE
module {
  llvm.func @matmul(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %x = llvm.load %a : !llvm.ptr -> f32
    %y = llvm.load %b : !llvm.ptr -> f32
    %old = llvm.load %c : !llvm.ptr -> f32
    %sum = llvm.fadd %x, %y : f32
    %new = llvm.fadd %old, %sum : f32
    llvm.store %new, %c : f32, !llvm.ptr
    llvm.return
  }
}
