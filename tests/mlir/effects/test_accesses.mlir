// ----- MODULE
module {
  func.func private @use(TYPE)
  func.func @main(%a: memref<8x16xf32>, %bytes: memref<1024xi8>, %d: memref<8x?xf32>, %c: i1, %n: index) {
    %c0 = arith.constant 0 : index
    BODY
    func.call @use(%v) : (TYPE) -> ()
    return
  }
}
// ----- RIGHT_HALF
%r = memref.subview %a[0, 8] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1], offset: 8>>
// ----- BRANCH
scf.if %c -> memref<8x8xf32, strided<[16, 1], offset: 8>> {
      scf.yield %r : memref<8x8xf32, strided<[16, 1], offset: 8>>
    } else {
      scf.yield %r : memref<8x8xf32, strided<[16, 1], offset: 8>>
    }
// ----- CARRIED_VIEW
%r = memref.subview %a[0, 8] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1], offset: 8>>
%v = scf.for %i = %c0 to %n step %n iter_args(%x = %r) -> memref<8x8xf32, strided<[16, 1], offset: 8>> {
  func.call @use(%x) : (memref<8x8xf32, strided<[16, 1], offset: 8>>) -> ()
  scf.yield %x : memref<8x8xf32, strided<[16, 1], offset: 8>>
}
