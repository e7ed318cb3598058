"""The operations of openvino_tokenizers, registered as users register operations of their own.

``ovir.ops`` imports this package when a model needs it. ``regex`` and ``sentencepiece``, which the extra ``tokenizers``
installs, are needed only to run operations with patterns and with models of SentencePiece.
"""

from ovir.ops.base.registry import keeping_registered

with keeping_registered():
    import ovir.tokenizers.decoding
    import ovir.tokenizers.models
    import ovir.tokenizers.normalization
    import ovir.tokenizers.sentence_piece
    import ovir.tokenizers.shaping
    import ovir.tokenizers.splitting  # noqa: F401
