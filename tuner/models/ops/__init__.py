"""Transform ops of convolutions, quantized products and attention."""
