// ----- SHARED
%half = arith.constant 0.5 : f32
%c = memref.alloc() : memref<64xf32>
%h = gpu.alloc host_shared () : memref<64xf32>
memref.store %half, %h[%c1] : memref<64xf32>
memref.store %half, %c[%c1] : memref<64xf32>
%t0 = gpu.dealloc async [%t_s0] %h : memref<64xf32>
return %c : memref<64xf32>
// ----- WRITTEN
%da, %t0 = gpu.alloc async [%t_s0] () : memref<64xf32>
%t1 = gpu.memcpy async [%t_s0] %da, %a : memref<64xf32>, memref<64xf32>
%t2 = gpu.launch_func async [%t_s0] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : memref<64xf32>, %da : memref<64xf32>)
%t3 = gpu.memcpy async [%t_s0] %a, %da : memref<64xf32>, memref<64xf32>
%t4 = gpu.dealloc async [%t_s0] %da : memref<64xf32>
return
// ----- SWAP
func.func @swap(%a: memref<?xf32>, %x: f32, %n: index) -> (memref<?xf32>, f32, index) {
  %c0 = arith.constant 0 : index
  %size = memref.dim %a, %c0 : memref<?xf32>
  %new = memref.alloc(%size) : memref<?xf32>
  memref.copy %a, %new : memref<?xf32> to memref<?xf32>
  %old = memref.load %new[%n] : memref<?xf32>
  memref.store %x, %new[%n] : memref<?xf32>
  return %new, %old, %size : memref<?xf32>, f32, index
}
// ----- TWICE
func.func @f(%x: f32) -> (memref<3xf32>, memref<3xf32>) {
  %a = memref.alloc() : memref<3xf32>
  %b = memref.alloc() : memref<3xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<3xf32>)
  linalg.fill ins(%x : f32) outs(%b : memref<3xf32>)
  memref.dealloc %b : memref<3xf32>
  return %a, %a : memref<3xf32>, memref<3xf32>
}
// ----- STORE
func.func @f(%a: memref<3xf32>, %b: memref<3xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  memref.store %x, %a[%c0] : memref<3xf32>
  return
}
