"""How good searches and spaces are: replays of recorded spaces, warm starts, mining."""
