"""How dangerous each diagnostic is in an untrusted file."""

from __future__ import annotations

from collections.abc import Mapping

from ovir.diagnostics import codes
from ovir.diagnostics.codes import Code

SECURITY: Mapping[Code, float] = {
    codes.OVER_BUDGET: 7.5,
    codes.LINK: 7.5,
    codes.SPECIAL_FILE: 7.5,
    codes.XML_CONSTRUCT: 6.5,
    codes.NOT_UTF8: 5.0,
    codes.OUT_OF_PROPORTION: 7.5,
    codes.LARGE_TENSOR: 7.5,
    codes.LONG_LOOP: 7.5,
    codes.HEAVY_RUN: 7.5,
    codes.NAMED_PATH: 6.5,
    codes.UNSAFE_NAME: 5.0,
    codes.COMPRESSED: 6.5,
    codes.SPELLING: 5.0,
    codes.ENTITIES: 9.1,
    codes.DOCTYPE: 8.2,
    codes.NOT_XML: 4.0,
    codes.REPEATED_ELEMENT: 5.0,
    codes.TOO_DEEP: 7.5,
    codes.ENCODING: 5.0,
    codes.UNKNOWN_OPSET: 8.8,
    codes.UNKNOWN_TYPE: 8.8,
    codes.DUPLICATE_ID: 6.5,
    codes.DUPLICATE_PORT: 6.5,
    codes.DUPLICATE_NAME: 5.0,
    codes.TENSOR_NAME: 5.0,
    codes.RESULT_NAME: 5.0,
    codes.EXTENSION: 8.8,
    codes.SIZE_OVERFLOW: 8.2,
    codes.PAST_END: 8.2,
    codes.TOO_FEW_BYTES: 8.2,
    codes.TOO_MANY_BYTES: 5.0,
    codes.STRING_DATA: 8.2,
    codes.OVERLAP: 5.0,
    codes.UNUSED_BYTES: 5.0,
    codes.INDEX_RANGE: 7.5,
    codes.BOOLEAN_BYTES: 5.0,
    codes.ZERO_DIVISOR: 5.0,
    codes.INTERNAL: 5.0,
}
"""The severity that SARIF gives the rule of a code: from 4 on medium, from 7 on high, from 9 on critical."""

_GRADED = frozenset({codes.NAMED_PATH, codes.TOO_MANY_BYTES, codes.UNUSED_BYTES})
"""Codes whose rules say themselves which places are errors and which occur in honest models."""
_HONEST = frozenset({codes.DUPLICATE_NAME, codes.TENSOR_NAME})
"""Codes of warnings that models of OpenVINO's own exporters have."""

ALWAYS_ERRORS = frozenset(code.id for code in SECURITY if code not in _GRADED | _HONEST)
"""Codes that are errors in untrusted files, also those that are warnings or infos elsewhere."""
