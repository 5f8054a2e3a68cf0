// ----- PIPELINE

!tile = memref<4xf32, #gpu.address_space<workgroup>>
module {
  func.func @f(%a: memref<8x4xf32>) -> (f32, f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %total:2 = scf.for %k = %c0 to %c8 step %c4 iter_args(%before = %zero, %last = %zero) -> (f32, f32) {
      %tile = memref.alloc() : !tile
      scf.for %i = %c0 to %c4 step %c2 {
        scf.for %j = %c0 to %c4 step %c4 {
          %row = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%k, %i)
          %x = memref.load %a[%row, %j] : memref<8x4xf32>
          memref.store %x, %tile[%i] : !tile
        }
      }
      %sums:2 = scf.for %i = %c0 to %c4 step %c2 iter_args(%sum = %before, %old = %last) -> (f32, f32) {
        %x = memref.load %tile[%i] : !tile
        %new = arith.addf %sum, %x : f32
        scf.yield %new, %sum : f32, f32
      }
      scf.yield %sums#0, %sums#1 : f32, f32
    }
    return %total#0, %total#1 : f32, f32
  }
}
// ----- NEST

module {
  func.func @f(%a: memref<6x5xf64>, %c: memref<6x5xf64>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %start = arith.constant 0.5 : f64
    %never = scf.for %i = %c5 to %c5 step %c1 iter_args(%kept = %start) -> (f64) {
      %more = arith.addf %kept, %kept : f64
      scf.yield %more : f64
    }
    scf.for %i = %c0 to %c6 step %c1 {
      %sum = scf.for %j = %c0 to %c5 step %c2 iter_args(%before = %never) -> (f64) {
        %is_low = arith.cmpi slt, %j, %i : index
        scf.if %is_low {
          %x = memref.load %a[%i, %j] : memref<6x5xf64>
          %y = arith.addf %x, %before : f64
          memref.store %y, %c[%i, %j] : memref<6x5xf64>
        }
        %x = memref.load %a[%i, %j] : memref<6x5xf64>
        %after = arith.addf %before, %x : f64
        scf.yield %after : f64
      }
      memref.store %sum, %c[%i, %c1] : memref<6x5xf64>
    }
    return
  }
}
// ----- GUARDED
transform.sequence %func : !transform.any_op failures(suppress) {
^bb0(%inner: !transform.any_op):
  "tuner.unroll_inner_loops"(%inner) : (!transform.any_op) -> ()
}
