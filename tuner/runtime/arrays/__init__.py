"""Reads arrays of other packages through DLPack or ``__cuda_array_interface__``."""
