"""Everything that is wrong with an IR file, not the first thing only.

Reading tells what is wrong with the XML, the graph and the attributes; inference, with types and shapes; what they
need not know, the rules tell: one small function for one code, in the files of ``rules/``.
"""

from ovir.checks.checker import check

__all__ = ["check"]
