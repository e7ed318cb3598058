"""Extensions: operations that are in no opset, and the packages known to provide them."""

from __future__ import annotations

from ovir.ops.base import opsets

TOKENIZERS = frozenset(
    {
        "BPETokenizer",
        "ByteFallback",
        "BytesToChars",
        "CaseFold",
        "CharsMapNormalization",
        "CharsToBytes",
        "CombineSegments",
        "ContribStringJoin",
        "ContribStringSplit",
        "EqualStr",
        "FuzeRagged",
        "NormalizeUnicode",
        "NumericToString",
        "RaggedTensorPack",
        "RaggedTensorUnpack",
        "RaggedToDense",
        "RaggedToRagged",
        "RaggedToSparse",
        "RegexNormalization",
        "RegexSplit",
        "SentencepieceDetokenizer",
        "SentencepieceStreamDetokenizer",
        "SentencepieceTokenizer",
        "SpecialTokensSplit",
        "StringTensorPack",
        "StringTensorUnpack",
        "StringToHashBucket",
        "TrieTokenizer",
        "Truncate",
        "UTF8Validate",
        "UnigramTokenizer",
        "VocabDecoder",
        "VocabEncoder",
        "WordpieceTokenizer",
    }
)
"""The operations of openvino_tokenizers, from its registration of them (release 2026)."""

_VERSIONS = {"extension", "experimental", "openvino_tokenizers"}


def is_extension(type_name: str, version: str) -> bool:
    """Return whether a layer's type and version name an operation of an extension.

    Extensions choose their own version. A version that is no opset, of a type that is in no opset, is such a choice;
    ``ReLU`` with version ``1`` is a wrong version.
    """
    version = version.lower()
    if version in _VERSIONS:
        return opsets.resolve(type_name, version) is None
    return opsets.canonical_type(type_name) is None and not version.startswith("opset") and not version.isdecimal()


def is_extension_version(version: str) -> bool:
    """Return whether applications give this version to operations that they add, unless they choose another."""
    return version.lower() == "extension"
