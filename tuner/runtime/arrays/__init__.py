"""Arrays of other packages, by DLPack or ``__cuda_array_interface__``."""
