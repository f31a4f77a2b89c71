"""Archives that mean harm, and archives that are merely broken: what loading makes of them."""
