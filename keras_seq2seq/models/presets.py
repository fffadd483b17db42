"""Plain functions that build the well-known models."""

from keras_seq2seq.layers import (
    LinearBias,
    PositionalEmbedding,
    RelativeBias,
    RotaryPositions,
)
from keras_seq2seq.models.seq2seq import Seq2Seq
from keras_seq2seq.models.transformer import TransformerDecoder, TransformerEncoder

__all__ = ["transformer_seq2seq"]

# layers, model_dim, feed_forward_dim, heads
SIZES = {
    "tiny": (4, 128, 256, 4),  # Wu et al. 2021
    "small": (6, 256, 1024, 4),
    "base": (6, 512, 2048, 8),  # Vaswani et al. 2017
    "big": (6, 1024, 4096, 16),  # Vaswani et al. 2017
}
ABSOLUTE = ("sinusoidal", "learned", None)


def dimensions(size, **given):
    """Return the dimensions of `size`, each replaced by what is given for it."""
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(map(repr, SIZES))}, received {size!r}.")
    names = ("num_layers", "model_dim", "feed_forward_dim", "num_heads")
    return tuple(
        preset if given.get(name) is None else given[name]
        for name, preset in zip(names, SIZES[size], strict=True)
    )


def relative_positions(positions, num_heads):
    """Return a new encoding that acts inside the attention, or None for one that acts on embeddings."""
    makers = {
        "rotary": RotaryPositions,
        "alibi": lambda: LinearBias(num_heads),
        "relative": lambda: RelativeBias(num_heads),
    }
    if positions in ABSOLUTE:
        return None
    if positions not in makers:
        names = ", ".join(repr(name) for name in (*ABSOLUTE, *makers))
        raise ValueError(f"positions must be one of {names}, received {positions!r}.")
    return makers[positions]()


def transformer_seq2seq(
    source_vocabulary_size,
    target_vocabulary_size=None,
    *,
    size="base",
    num_layers=None,
    decoder_layers=None,
    model_dim=None,
    feed_forward_dim=None,
    num_heads=None,
    positions="sinusoidal",
    max_length=None,
    placement="pre",
    normalization="layer",
    activation="relu",
    num_key_value_heads=None,
    use_bias=True,
    dropout=0.1,
    attention_dropout=0.0,
    activation_dropout=0.0,
    share_embeddings=None,
    tie_embeddings=True,
    name="transformer_seq2seq",
):
    """Build the encoder-decoder Transformer (Vaswani et al. 2017).

    Args:
        source_vocabulary_size: V of the sources.
        target_vocabulary_size: V of the targets; default: one vocabulary for both.
        size: "tiny" (Wu et al. 2021), "small", "base" or "big" (Vaswani et al. 2017); each of its dimensions
            can be replaced by the four arguments that follow.
        num_layers: blocks of the encoder, and of the decoder unless `decoder_layers` is given.
        decoder_layers: blocks of the decoder.
        model_dim: D.
        feed_forward_dim: size inside the feed-forward sublayers.
        num_heads: H.
        positions: "sinusoidal", "learned" (needs `max_length`), "rotary", "alibi", "relative" or None.
        max_length: number of learned positions.
        placement: "pre" or "post" norm.
        normalization: "layer" or "rms".
        activation: of the feed-forward sublayers, gated ones included; see `FeedForward`.
        num_key_value_heads: G; default H.
        use_bias: whether projections have biases.
        dropout: rate on embeddings and on the output of every sublayer.
        attention_dropout: rate on the attention weights.
        activation_dropout: rate inside the feed-forward sublayers.
        share_embeddings: one matrix for source and target; default: when the vocabulary is one.
        tie_embeddings: one matrix for target embedding and output projection.
        name: of the model.

    Returns:
        `Seq2Seq`, not compiled.

    Raises:
        ValueError: an unknown size or encoding; `share_embeddings` with two vocabularies of unequal size.
    """
    target_size = target_vocabulary_size or source_vocabulary_size
    if share_embeddings is None:
        share_embeddings = target_vocabulary_size is None
    if share_embeddings and target_size != source_vocabulary_size:
        raise ValueError(
            "share_embeddings needs vocabularies of one size, received "
            f"source_vocabulary_size={source_vocabulary_size} and target_vocabulary_size={target_size}."
        )
    layers, model_dim, feed_forward_dim, num_heads = dimensions(
        size,
        num_layers=num_layers,
        model_dim=model_dim,
        feed_forward_dim=feed_forward_dim,
        num_heads=num_heads,
    )

    def embedding(vocabulary_size, name):
        absolute = positions if positions in ABSOLUTE else None
        return PositionalEmbedding(vocabulary_size, model_dim, absolute, max_length, name=name)

    def stack():
        block = {
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "num_key_value_heads": num_key_value_heads,
            "activation": activation,
            "placement": placement,
            "normalization": normalization,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "use_bias": use_bias,
        }
        return {"positions": relative_positions(positions, num_heads), "dropout": dropout, "block": block}

    source = embedding(source_vocabulary_size, "embedding" if share_embeddings else "source_embedding")
    target = None if share_embeddings else embedding(target_size, "target_embedding")
    encoder = TransformerEncoder(source, layers, name="encoder", **stack())
    decoder = TransformerDecoder(
        target, decoder_layers or layers, tie_embeddings=tie_embeddings, name="decoder", **stack()
    )
    return Seq2Seq(encoder, decoder, name=name)
