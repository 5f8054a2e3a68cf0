"""The PTX simulator under test. data/*.ptx came out of LLVM's NVPTX back end."""
