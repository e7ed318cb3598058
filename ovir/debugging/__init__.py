"""Find what goes wrong: watches, comparisons with other engines, and what follows from them."""
