// ----- DYNAMIC
%n = memref.dim %d, %c0 : memref<?xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %x = memref.load %d[%bx] : memref<?xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %d[%bx] : memref<?xf32>
      gpu.terminator
    }
