// ----- host_arguments_next_to_device_memory_are_copied
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- the_host_loads_and_stores_what_the_device_holds
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
%x = memref.load %d[%c3] : memref<16xf32>
memref.store %x, %b[%c0] : memref<16xf32>
memref.store %one, %d[%c1] : memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
memref.copy %d, %a : memref<16xf32> to memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- what_the_device_holds_is_printed_and_returned
%d = gpu.alloc () : memref<16xf32>
memref.copy %a, %d : memref<16xf32> to memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
%u = memref.cast %d : memref<16xf32> to memref<*xf32>
call @printMemrefF32(%u) : (memref<*xf32>) -> ()
return %d : memref<16xf32>
// ----- shared_memory_stays_where_both_reach_it_next_to_copied_arguments
%s = gpu.alloc host_shared () : memref<16xf32>
memref.copy %a, %s : memref<16xf32> to memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%s : memref<16xf32>, %b : memref<16xf32>, %s : memref<16xf32>)
%x = memref.load %s[%c3] : memref<16xf32>
memref.store %x, %a[%c0] : memref<16xf32>
gpu.dealloc %s : memref<16xf32>
// ----- a_fill_of_host_memory_is_done
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.memset %b, %one : memref<16xf32>, f32
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- memory_of_a_stream_that_the_host_reads_is_copied
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<16xf32>
"gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, memref<16xf32>, memref<16xf32>) -> ()
%x = memref.load %d[%c3] : memref<16xf32>
memref.store %x, %b[%c0] : memref<16xf32>
"gpux.dealloc"(%s, %d) : (!gpux.StreamType, memref<16xf32>) -> ()
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
// ----- a_program_that_copies_for_itself_stays_as_it_is
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
gpu.memcpy %b, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- a_loop_over_host_and_device_memory
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
scf.for %i = %c0 to %c3 step %c1 {
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
  %x = memref.load %d[%i] : memref<16xf32>
  memref.store %x, %b[%i] : memref<16xf32>
}
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- shared_memory_that_is_exchanged_for_other_memory_is_refused_by_name
%s = gpu.alloc host_shared () : memref<16xf32>
%r = arith.select %flag, %s, %a : memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%r : memref<16xf32>)
gpu.dealloc %s : memref<16xf32>
