// ----- TOKENS
func.func @main(%x: memref<2x64xi8>, %y: memref<2x64xi8>, %k: i8) {
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<2x64xi8>
  %t2 = gpu.memcpy async [%t1] %d, %x : memref<2x64xi8>, memref<2x64xi8>
  %t3 = gpu.memset async [%t2] %d, %k : memref<2x64xi8>, i8
  %t4 = gpu.memcpy async [%t3] %y, %d : memref<2x64xi8>, memref<2x64xi8>
  %t5 = gpu.dealloc async [%t4] %d : memref<2x64xi8>
  gpu.wait [%t5]
  return
}
