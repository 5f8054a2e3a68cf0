// ----- BUFFERS

module {
  func.func @scale(%a: memref<4x4xf32>, %b: memref<4x4xf32, strided<[16, 1]>>) {
    linalg.copy ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32, strided<[16, 1]>>)
    return
  }
}
// ----- STORE

func.func @f(%c: memref<4x8xf32, strided<[9, 1]>>, %i: index, %j: index) {
  %x = arith.constant 1.0 : f32
  memref.store %x, %c[%i, %j] : memref<4x8xf32, strided<[9, 1]>>
  return
}
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
