// ----- HOG
%true = arith.constant true
    %mib = arith.constant 16777216 : i64
    %low = arith.constant 0 : index
    %high = arith.constant 16777216 : index
    %page = arith.constant 4096 : index
    scf.while : () -> () {
      %block = llvm.call @malloc(%mib) : (i64) -> !llvm.ptr
      scf.for %at = %low to %high step %page {
        %offset = arith.index_cast %at : index to i64
        %place = llvm.getelementptr %block[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
        llvm.store volatile %one, %place : i64, !llvm.ptr
      }
      scf.condition(%true)
    } do {
      scf.yield
    }
// ----- KERNEL
module {
  llvm.mlir.global internal @calls(0 : i64) : i64
  {declarations}
  // A right kernel, then a deed. %calls counts the calls of this process.
  func.func @matmul(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1 : i64
    linalg.fill ins(%zero : f32) outs(%c : memref<4x16xf32>)
    linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
    %counter = llvm.mlir.addressof @calls : !llvm.ptr
    %before = llvm.load %counter : !llvm.ptr -> i64
    %calls = arith.addi %before, %one : i64
    llvm.store %calls, %counter : i64, !llvm.ptr
    {deed}
    return
  }
}
// ----- CHANGE_ONE
%i = arith.constant 2 : index
    %j = arith.constant 5 : index
    %old = memref.load %c[%i, %j] : memref<4x16xf32>
    %less = arith.constant 1.0e-3 : f32
    %new = arith.addf %old, %less : f32
    memref.store %new, %c[%i, %j] : memref<4x16xf32>
// ----- HANG
%true = arith.constant true
    scf.while : () -> () {
      %seen = llvm.load volatile %counter : !llvm.ptr -> i64
      scf.condition(%true)
    } do {
      scf.yield
    }
// ----- STORE
%i = arith.constant {row} : index
    %j = arith.constant {column} : index
    %x = arith.constant {value} : f32
    memref.store %x, %c[%i, %j] : memref<4x16xf32>
// ----- FROM_CALL
%limit = arith.constant {number} : i64
    %is_late = arith.cmpi sge, %calls, %limit : i64
    scf.if %is_late { {deed} }
// ----- CHANGE_A
%i = arith.constant 1 : index
    %x = arith.constant 0.5 : f32
    memref.store %x, %a[%i, %i] : memref<4x8xf32>
// ----- EXIT
%status = arith.constant 3 : i32
    llvm.call @_exit(%status) : (i32) -> ()
