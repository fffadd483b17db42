"""Tokenizers of every kind, small, for the tests that all kinds share."""

from collections.abc import Callable

from keras_seq2seq.text import Bytes, Characters, SentencePiece, Tokenizer, WordPiece, Words

LINES = [
    "the quick brown fox jumps over the lazy dog",
    "she sells sea shells by the sea shore, 25 of them.",
    "他住在这附近",
    "s t",
]
ALL = "".join(map(chr, range(0x180))) + "\u2028\ufeff\ufffd\u2047£😀他住在这附近\uff0c对吗\uff1f"

# Each makes a tokenizer of its kind that knows these lines.
MAKE: dict[str, Callable[[list[str]], Tokenizer]] = {
    "bytes": lambda _: Bytes(),
    "characters": lambda lines: Characters.train(lines, [ALL]),
    "few_characters": Characters.train,
    "sentence_piece": lambda lines: SentencePiece.train(lines, vocabulary_size=90),
    "word_piece": lambda lines: WordPiece.train(lines, vocabulary_size=90, lowercase=True),
    "words": Words.train,
    "split_words": lambda lines: Words.train(lines, split="punctuation", lowercase=True),
}
# Of these kinds, any text of known characters comes back.
REVERSIBLE = {"characters", "bytes"}
