"""The checker, which reports everything that is wrong with an IR file, not only the first error.

Reading reports faults of the XML, the graph and the attributes; inference reports faults of types and shapes.
Everything else is left to the rules in ``rules/``, each of which is a small function for one code.
"""
