"""Models: functional Keras graphs for training that can also be decoded step by step."""

from keras_seq2seq.models.full_pass import FullPass, decodable
from keras_seq2seq.models.language_model import LanguageModel
from keras_seq2seq.models.presets import transformer_encoder, transformer_lm, transformer_seq2seq
from keras_seq2seq.models.recurrent import rnn_seq2seq
from keras_seq2seq.models.recurrent_decoder import RecurrentDecoder
from keras_seq2seq.models.recurrent_encoder import RecurrentEncoder
from keras_seq2seq.models.seq2seq import Seq2Seq
from keras_seq2seq.models.transformer import TransformerDecoder, TransformerEncoder
from keras_seq2seq.models.transformer_block import TransformerBlock

__all__ = [
    "FullPass",
    "LanguageModel",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "Seq2Seq",
    "TransformerBlock",
    "TransformerDecoder",
    "TransformerEncoder",
    "decodable",
    "rnn_seq2seq",
    "transformer_encoder",
    "transformer_lm",
    "transformer_seq2seq",
]
