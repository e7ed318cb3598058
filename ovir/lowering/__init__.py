"""What a layer computes, said by older operation versions: the table of decompositions, and what releases support."""
