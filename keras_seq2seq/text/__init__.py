"""Text to ids and back, inside the graph: one file per kind of tokenizer."""

from keras_seq2seq.text.bytes import Bytes
from keras_seq2seq.text.characters import Characters
from keras_seq2seq.text.keras_hub import KerasHub
from keras_seq2seq.text.sampling import SubwordSampling
from keras_seq2seq.text.sentence_piece import SentencePiece
from keras_seq2seq.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, load
from keras_seq2seq.text.word_piece import WordPiece
from keras_seq2seq.text.words import Words

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "UNK_ID",
    "Bytes",
    "Characters",
    "KerasHub",
    "SentencePiece",
    "SubwordSampling",
    "Tokenizer",
    "WordPiece",
    "Words",
    "load",
]
