// ----- PAYLOAD

module {
  func.func @f(%a: memref<64xDTYPE>, %i: index, %n: index) {
    %tile = memref.alloc() : memref<64xDTYPE, #gpu.address_space<workgroup>>
    %copy = nvgpu.device_async_copy %a[%i], %tile[%i], ELEMENTS, %n : memref<64xDTYPE> to memref<64xDTYPE, #gpu.address_space<workgroup>>
    return
  }
}
