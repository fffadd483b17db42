"""The function that builds recurrent encoder-decoders."""

from keras_seq2seq.layers import PositionalEmbedding
from keras_seq2seq.models.recurrent_decoder import RecurrentDecoder
from keras_seq2seq.models.recurrent_encoder import RecurrentEncoder
from keras_seq2seq.models.seq2seq import Seq2Seq

__all__ = ["rnn_seq2seq"]


def rnn_seq2seq(
    source_vocabulary_size,
    target_vocabulary_size=None,
    *,
    cell="lstm",
    encoder_layers=2,
    decoder_layers=2,
    units=512,
    decoder_units=None,
    embedding_dim=None,
    bidirectional=True,
    attention=None,
    input_feeding=None,
    dropout=0.2,
    recurrent_dropout=0.0,
    share_embeddings=False,
    tie_embeddings=False,
    name="rnn_seq2seq",
):
    """Build a recurrent encoder-decoder (Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015).

    Args:
        source_vocabulary_size: V of the sources.
        target_vocabulary_size: V of the targets; default: one vocabulary for both.
        cell: "lstm", "gru" or "rnn".
        encoder_layers: recurrent layers of the encoder.
        decoder_layers: recurrent layers of the decoder.
        units: size of a recurrent layer; of each direction in a bidirectional encoder.
        decoder_units: size of the decoder's layers; default `units`.
        embedding_dim: D; default `units`.
        bidirectional: whether the encoder reads in both directions.
        attention: an attention layer, or None for the fixed context vector.
        input_feeding: see `RecurrentDecoder`.
        dropout: rate on embeddings, between layers and before the output projection.
        recurrent_dropout: rate on the outputs that go back into a cell.
        share_embeddings: one matrix for source and target.
        tie_embeddings: one matrix for target embedding and output projection.
        name: of the model.

    Returns:
        `Seq2Seq`, not compiled.

    Raises:
        ValueError: an option that the attention does not have; `share_embeddings` with vocabularies of
            unequal size; an unknown cell.

    Example:
        >>> attention = ks.layers.LuongAttention("general")
        >>> model = ks.models.rnn_seq2seq(100, units=16, attention=attention, input_feeding=True)
        >>> tuple(model({"source": np.array([[8, 9, 3]]), "target": np.array([[2, 7]])}).shape)
        (1, 2, 100)
    """
    target_size = target_vocabulary_size or source_vocabulary_size
    if share_embeddings and target_size != source_vocabulary_size:
        raise ValueError(
            "share_embeddings needs vocabularies of one size, received "
            f"source_vocabulary_size={source_vocabulary_size} and target_vocabulary_size={target_size}."
        )
    size = embedding_dim or units

    def embedding(vocabulary_size, name):
        return PositionalEmbedding(vocabulary_size, size, positions=None, scale=False, name=name)

    encoder = RecurrentEncoder(
        embedding(source_vocabulary_size, "embedding" if share_embeddings else "source_embedding"),
        cell,
        units,
        encoder_layers,
        bidirectional,
        dropout,
        recurrent_dropout,
        name="encoder",
    )
    decoder = RecurrentDecoder(
        None if share_embeddings else embedding(target_size, "target_embedding"),
        cell,
        decoder_units or units,
        decoder_layers,
        attention,
        input_feeding,
        dropout,
        recurrent_dropout,
        tie_embeddings,
        name="decoder",
    )
    return Seq2Seq(encoder, decoder, name=name)
