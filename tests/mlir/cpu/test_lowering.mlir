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
// ----- ARITHMETIC

      %x = llvm.load %from : !llvm.ptr -> bf16
      %next = llvm.getelementptr %from[1] : (!llvm.ptr) -> !llvm.ptr, bf16
      %y = llvm.load %next : !llvm.ptr -> bf16
      %third = llvm.mlir.constant(3.337860e-01 : bf16) : bf16
      %product = llvm.fmul %x, %third : bf16
      %sum = llvm.intr.fma(%product, %y, %x) : (bf16, bf16, bf16) -> bf16
      %is_less = llvm.fcmp "olt" %sum, %y : bf16
      %least = llvm.select %is_less, %sum, %y : i1, bf16
      %wide = llvm.fpext %least : bf16 to f64
      %again = llvm.fptrunc %wide : f64 to bf16
      llvm.store %again, %to : bf16, !llvm.ptr
// ----- COLLECTED

      %x = llvm.load %from : !llvm.ptr -> bf16
      %y = llvm.call @second(%x, %x) : (bf16, bf16) -> bf16
      %none = llvm.mlir.poison : vector<2xbf16>
      %first = llvm.mlir.constant(0 : i64) : i64
      %other = llvm.mlir.constant(1 : i64) : i64
      %one = llvm.insertelement %x, %none[%first : i64] : vector<2xbf16>
      %two = llvm.insertelement %y, %one[%other : i64] : vector<2xbf16>
      %wide = llvm.fpext %two : vector<2xbf16> to vector<2xf32>
      llvm.store %wide, %to : vector<2xf32>, !llvm.ptr
// ----- SECOND

llvm.mlir.global private constant @table(dense<[1.0, -2.5]> : tensor<2xbf16>) : !llvm.array<2 x bf16>
llvm.func @second(%x: bf16, %y: bf16) -> bf16 {
  %table = llvm.mlir.addressof @table : !llvm.ptr
  %at = llvm.getelementptr %table[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<2 x bf16>
  %factor = llvm.load %at : !llvm.ptr -> bf16
  %product = llvm.fmul %factor, %y : bf16
  llvm.return %product : bf16
}
// ----- WITH_MEMORY

func.func @fusion(%number: i64) {
  %zero = arith.constant 0 : i64
  %limit = arith.constant 9 : i64
  %memory = memref.alloc() : memref<512xi8>
  %is_less = arith.cmpi slt, %number, %limit : i64
  cf.assert %is_less, "too large"
  memref.dealloc %memory : memref<512xi8>
  %is_more = arith.cmpi sge, %number, %zero : i64
  cf.assert %is_more, "too small"
  return
}
// ----- IN_LOOP

func.func @fusion(%is_right: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  scf.for %i = %zero to %nine step %one {
    %memory = memref.alloc() : memref<512xi8>
    cf.assert %is_right, "wrong"
    memref.dealloc %memory : memref<512xi8>
  }
  return
}
// ----- IN_ANOTHER

func.func @called(%is_right: i1) {
  cf.assert %is_right, "wrong"
  return
}
func.func @fusion(%is_right: i1) {
  func.call @called(%is_right) : (i1) -> ()
  return
}
