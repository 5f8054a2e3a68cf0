// ----- PAYLOAD

!b = memref<32x64xf32>
!view = memref<32x40xf32, strided<[64, 1], offset: 16>>
module {
  func.func private @use(vector<40xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
  func.func @f(%a: memref<8x64xf32>, %b: !b) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %own = memref.alloc() : !b
    %outside = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true]} : !b, vector<16xf32>
    %view = memref.subview %b[0, 16] [32, 40] [1, 1] : !b to !view
    scf.for %i = %c0 to %c32 step %c4 {
      %direct = vector.transfer_read %b[%i, %c4], %zero {in_bounds = [true]} : !b, vector<40xf32>
      %through = vector.transfer_read %view[%i, %c0], %zero {in_bounds = [true]} : !view, vector<16xf32>
      %of_own = vector.transfer_read %own[%i, %c0], %zero {in_bounds = [true]} : !b, vector<16xf32>
      func.call @use(%direct, %through, %of_own, %outside)
        : (vector<40xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) -> ()
    }
    return
  }
}
// ----- WRITES

!c = memref<32x64xf32>
module {
  func.func @f(%sums: vector<16xf32>, %c: !c) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    scf.for %i = %c0 to %c32 step %c8 {
      vector.transfer_write %sums, %c[%i, %c8] {in_bounds = [true]} : vector<16xf32>, !c
    }
    return
  }
}
// ----- PANELS

// Three strips of a 5 x 8 x 64 product: two in a loop, one row after it. A panel has two cache lines in a row.
!b = memref<2x8x32xf32>
module {
  func.func private @use(vector<32xf32>)
  func.func @f(%a: memref<5x8xf32>, %b: !b {tuner.packing = 32 : i64, tuner.weight}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    scf.for %panel = %c0 to %c2 step %c1 {
      scf.for %row = %c0 to %c4 step %c2 {
        scf.for %k = %c0 to %c8 step %c1 {
          %of_b = vector.transfer_read %b[%panel, %k, %c0], %zero {in_bounds = [true]} : !b, vector<32xf32>
          func.call @use(%of_b) : (vector<32xf32>) -> ()
        } {k}
      } {ir}
      scf.for %k = %c0 to %c8 step %c1 {
        %of_b = vector.transfer_read %b[%panel, %k, %c0], %zero {in_bounds = [true]} : !b, vector<32xf32>
        func.call @use(%of_b) : (vector<32xf32>) -> ()
      } {k}
    } {jc}
    return
  }
}

// ----- SIZED_PANELS

!b = memref<2x${depth}x${columns}xf32>
module {
  func.func private @use(vector<${columns}xf32>)
  func.func @f(%a: memref<5x8xf32>, %b: !b {tuner.packing = ${columns} : i64, tuner.weight}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %depth = arith.constant ${depth} : index
    %unrolled = arith.constant ${unrolled} : index
    %rows = arith.constant ${rows} : index
    ${offsets}
    %zero = arith.constant 0.0 : f32
    scf.for %panel = %c0 to %c1 step %c1 {
      scf.for %row = %c0 to %rows step %c2 {
        scf.for %k = %c0 to %depth step %unrolled {
          ${reads}
        } {k}
      } {ir}
      scf.for %k = %c0 to %depth step %unrolled {
        ${reads}
      } {k}
    } {jc}
    return
  }
}

// ----- GUARDED
transform.sequence %root : !transform.any_op failures(suppress) {
^bb0(%inner: !transform.any_op):
  "tuner.prefetch_reads"(%inner) : (!transform.any_op) -> ()
}
transform.annotate %func "went_on" : !transform.any_op
