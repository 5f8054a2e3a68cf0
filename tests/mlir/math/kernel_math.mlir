// ----- KERNEL
func.func @f({parameters}, %out: memref<{count}x{result}>) {
      %one = arith.constant 1 : index
      %threads = arith.constant {threads} : index
      %blocks = arith.constant {blocks} : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
                 threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
        %start = arith.muli %bx, %threads : index
        %i = arith.addi %start, %tx : index
        {loads}
        {op}
        memref.store %y, %out[%i] : memref<{count}x{result}>
        gpu.terminator
      }
      return
    }
