"""`make gpu-visit`: what a quarter of an hour on a GPU must decide, with code that was compiled before."""
