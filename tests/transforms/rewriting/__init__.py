"""Rules that put one piece of program in the place of another."""
