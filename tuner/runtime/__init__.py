"""What runs lowered code on this machine."""
