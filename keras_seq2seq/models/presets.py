"""Plain functions that build the well-known models."""

from typing import Any

import keras

from keras_seq2seq.layers import LinearBias, PositionalEmbedding, RelativeBias, RotaryPositions
from keras_seq2seq.layers.feed_forward import GATES
from keras_seq2seq.models.language_model import LanguageModel
from keras_seq2seq.models.seq2seq import Seq2Seq
from keras_seq2seq.models.transformer import TransformerDecoder, TransformerEncoder

__all__ = ["transformer_encoder", "transformer_lm", "transformer_seq2seq"]

# layers, model_dim, feed_forward_dim, heads
SIZES = {
    "tiny": (4, 128, 256, 4),  # Wu et al. 2021
    "small": (6, 256, 1024, 4),
    "base": (6, 512, 2048, 8),  # Vaswani et al. 2017
    "big": (6, 1024, 4096, 16),  # Vaswani et al. 2017
    "gpt2": (12, 768, 3072, 12),  # Radford et al. 2019, the smallest
}
ABSOLUTE = ("sinusoidal", "learned", "none", None)


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
    dropout=0.1,
    share_embeddings=None,
    tie_embeddings=True,
    name="transformer_seq2seq",
    **block,
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
        positions: "sinusoidal", "learned" (needs `max_length`), "rotary", "alibi", "relative" or "none".
        max_length: number of learned positions.
        dropout: rate on embeddings and on the output of every sublayer.
        share_embeddings: one matrix for source and target; default: when the vocabulary is one.
        tie_embeddings: one matrix for target embedding and output projection.
        name: of the model.
        **block: further arguments of `TransformerBlock`: `placement`, `normalization`, `activation`,
            `num_key_value_heads`, `attention_dropout` and so on.

    Returns:
        `Seq2Seq`, not compiled.

    Raises:
        ValueError: an unknown size or encoding; `share_embeddings` with two vocabularies of unequal size.

    Example:
        >>> model = ks.models.transformer_seq2seq(100, size="tiny", positions="rotary", num_key_value_heads=1)
        >>> logits = model({"source": np.array([[8, 9, 3]]), "target": np.array([[2, 7]])})
        >>> tuple(logits.shape)
        (1, 2, 100)
    """
    target_size = source_vocabulary_size if target_vocabulary_size is None else target_vocabulary_size
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
    absolute = positions if positions in ("sinusoidal", "learned") else None

    def embedding(vocabulary_size, name):
        return PositionalEmbedding(vocabulary_size, model_dim, absolute, max_length, name=name)

    def stack():
        return {
            "positions": relative_positions(positions, num_heads),
            "dropout": dropout,
            "block": {"num_heads": num_heads, "feed_forward_dim": feed_forward_dim, **block},
        }

    source = embedding(source_vocabulary_size, "embedding" if share_embeddings else "source_embedding")
    target = None if share_embeddings else embedding(target_size, "target_embedding")
    encoder = TransformerEncoder(source, layers, name="encoder", **stack())
    decoder = TransformerDecoder(
        target,
        layers if decoder_layers is None else decoder_layers,
        tie_embeddings=tie_embeddings,
        name="decoder",
        **stack(),
    )
    return Seq2Seq(encoder, decoder, name=name)


def transformer_encoder(
    vocabulary_size,
    *,
    size="base",
    num_layers=None,
    model_dim=None,
    feed_forward_dim=None,
    num_heads=None,
    positions="sinusoidal",
    max_length=None,
    dropout=0.1,
    name="transformer_encoder",
    **block,
):
    """Build an encoder alone, for a head of one's own.

    Args:
        vocabulary_size: V.
        size: see `transformer_seq2seq`, as for all that follow.
        num_layers: how many blocks.
        model_dim: D.
        feed_forward_dim: size inside the feed-forward sublayers.
        num_heads: H.
        positions: "sinusoidal", "learned" (needs `max_length`), "rotary", "alibi", "relative" or "none".
        max_length: number of learned positions.
        dropout: rate on embeddings and on the output of every sublayer.
        name: of the model.
        **block: further arguments of `TransformerBlock`.

    Returns:
        A functional `keras.Model` from `source` int32 `[B, S]` to `[B, S, D]`.

    Example:
        >>> encoder = ks.models.transformer_encoder(100, size="tiny")
        >>> tagger = keras.Model(encoder.inputs, keras.layers.Dense(5)(encoder.output))
        >>> tuple(tagger({"source": np.array([[8, 9, 3]])}).shape)
        (1, 3, 5)
    """
    layers, model_dim, feed_forward_dim, num_heads = dimensions(
        size,
        num_layers=num_layers,
        model_dim=model_dim,
        feed_forward_dim=feed_forward_dim,
        num_heads=num_heads,
    )
    absolute = positions if positions in ("sinusoidal", "learned") else None
    encoder = TransformerEncoder(
        PositionalEmbedding(vocabulary_size, model_dim, absolute, max_length, name="embedding"),
        layers,
        positions=relative_positions(positions, num_heads),
        dropout=dropout,
        block={"num_heads": num_heads, "feed_forward_dim": feed_forward_dim, **block},
        name="encoder",
    )
    source = keras.Input((None,), dtype="int32", name="source")
    return keras.Model({"source": source}, encoder(source), name=name)


# What two well-known language models have in common with nobody else.
LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {  # Radford et al. 2019
        "positions": "learned",
        "scale": False,
        "tie_embeddings": True,
        "block": {"activation": "gelu"},
    },
    "llama": {  # Touvron et al. 2023
        "positions": "rotary",
        "scale": False,
        "tie_embeddings": False,
        "block": {"activation": "swiglu", "normalization": "rms", "use_bias": False},
    },
}


def transformer_lm(
    vocabulary_size,
    *,
    preset="gpt2",
    size="gpt2",
    num_layers=None,
    model_dim=None,
    feed_forward_dim=None,
    num_heads=None,
    positions=None,
    max_length=1024,
    dropout=0.1,
    tie_embeddings=None,
    name="transformer_lm",
    **block,
):
    """Build a decoder-only language model.

    Args:
        vocabulary_size: V.
        preset: "gpt2" (learned positions, GELU, layer norm, tied embeddings; Radford et al. 2019) or "llama"
            (rotary positions, SwiGLU, RMS norm, no biases; Touvron et al. 2023). Both are pre-norm.
        size: "tiny", "small", "base", "big", or "gpt2", the smallest of its family (12 blocks, 768);
            each of its dimensions can be replaced by the four arguments that follow.
        num_layers: how many blocks.
        model_dim: D.
        feed_forward_dim: default, where `model_dim` is given: 4 D, and 8/3 D for a gated activation.
        num_heads: H.
        positions: replaces the preset's; see `transformer_seq2seq`.
        max_length: number of learned positions.
        dropout: rate on embeddings and on the output of every sublayer.
        tie_embeddings: replaces the preset's.
        name: of the model.
        **block: replaces the preset's arguments of `TransformerBlock`.

    Returns:
        `LanguageModel`, not compiled. Weights start from N(0, 0.02), those of the projections that end a
        sublayer smaller by sqrt(2 num_layers) (Radford et al. 2019, section 2.3).

    Raises:
        ValueError: an unknown preset or encoding.

    Example:
        >>> model = ks.models.transformer_lm(100, preset="llama", size="tiny")
        >>> tuple(model({"target": np.array([[2, 7, 8, 9]])}).shape)
        (1, 4, 100)
    """
    if preset not in LANGUAGE_MODELS:
        names = ", ".join(map(repr, LANGUAGE_MODELS))
        raise ValueError(f"preset must be one of {names}, received {preset!r}.")
    chosen = LANGUAGE_MODELS[preset]
    positions = positions or chosen["positions"]
    block = {**chosen["block"], **block}
    if feed_forward_dim is None and model_dim is not None:
        feed_forward_dim = 8 * model_dim // 3 if block["activation"] in GATES else 4 * model_dim
    num_layers, model_dim, feed_forward_dim, num_heads = dimensions(
        size,
        num_layers=num_layers,
        model_dim=model_dim,
        feed_forward_dim=feed_forward_dim,
        num_heads=num_heads,
    )
    normal = keras.initializers.RandomNormal
    block.setdefault("kernel_initializer", normal(stddev=0.02))
    block.setdefault("output_initializer", normal(stddev=0.02 / (2 * num_layers) ** 0.5))
    absolute = positions if positions in ("sinusoidal", "learned") else None
    decoder = TransformerDecoder(
        PositionalEmbedding(
            vocabulary_size, model_dim, absolute, max_length, scale=chosen["scale"], name="embedding"
        ),
        num_layers,
        cross_attention=False,
        positions=relative_positions(positions, num_heads),
        dropout=dropout,
        tie_embeddings=chosen["tie_embeddings"] if tie_embeddings is None else tie_embeddings,
        block={"num_heads": num_heads, "feed_forward_dim": feed_forward_dim, **block},
        name="decoder",
    )
    return LanguageModel(decoder, name=name)
