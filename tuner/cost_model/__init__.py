"""What hardware can hold and what a schedule would cost, by counting."""
