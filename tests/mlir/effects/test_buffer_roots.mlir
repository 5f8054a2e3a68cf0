// ----- MODULE
module {
  memref.global @g : memref<16xf32> = dense<0.0>
  func.func private @use(VTYPE)
  func.func private @other(%a: memref<16xf32>) -> memref<16xf32>
  func.func @main(%a: memref<16xf32>, %b: memref<16xf32>, %c: i1, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    call @use(%v) : (VTYPE) -> ()
    return
  }
}
// ----- WHILE
%w:2 = scf.while (%x = %a, %z = %c0) : (memref<16xf32>, index) -> (index, memref<16xf32>) {
  %go = arith.cmpi slt, %z, %n : index
  scf.condition(%go) %z, %x : index, memref<16xf32>
} do {
^bb0(%z: index, %x: memref<16xf32>):
  %next = arith.addi %z, %c1 : index
  scf.yield %x, %next : memref<16xf32>, index
}
%v = memref.cast %w#1 : memref<16xf32> to memref<16xf32>
