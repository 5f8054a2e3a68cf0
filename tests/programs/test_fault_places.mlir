// ----- RACE
%s = memref.alloc() : memref<64xf32, 3>
memref.store %v, %s[%tx] : memref<64xf32, 3>
%r = arith.subi %c63, %tx : index
%w = memref.load %s[%r] : memref<64xf32, 3>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- OUT_OF_BOUNDS
%far = arith.addi %tx, %c64 : index
%w = memref.load %x[%c1, %far] : memref<2x64xf32>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
