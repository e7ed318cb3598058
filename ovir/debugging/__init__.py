"""Find faults: watches, comparisons with other engines, and conclusions from them."""
