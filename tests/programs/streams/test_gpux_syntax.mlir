// ----- WHOLE
func.func @main(%x: memref<8xf32>, %z: i32) {
  %c1 = arith.constant 1 : index
  %s = gpux.create_stream
  %0 = gpux.alloc (%s) : memref<8xf32>
  gpux.memcpy %s, %0, %x : memref<8xf32>, memref<8xf32>
  gpux.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %z args(%s : !gpux.StreamType, %0 : memref<8xf32>)
  gpux.wait %s
  gpux.dealloc(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()
  gpux.destroy_stream %s
  return
}
