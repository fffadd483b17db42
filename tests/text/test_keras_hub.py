"""Tokenizers of KerasHub behind our contract: ids, control tokens, files, seeding, exports."""

import io
import json
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import c_loader
import keras
import keras_hub
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_seq2seq import text
from keras_seq2seq.data import ParallelText
from keras_seq2seq.serving.graph_ops import refused_ops
from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, KerasHub

HUB = keras_hub.tokenizers
LINES = ["the quick brown fox", "jumps over a lazy dog", "she sells sea shells"]
TEXTS = [
    *LINES,
    "",
    "a 😀 <s> </s> <unk> [UNK] [PAD] [CLS] <|end|> <pad>",
    " two  spaces ",
    "a\u2028b\x97c\r\nd",
    "Ω" * 50,
]


def sentence_piece() -> Any:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 4),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return HUB.SentencePieceTokenizer(model.getvalue())


def word_piece(**options: Any) -> Any:
    letters = sorted(set("".join(LINES)) - {" "})
    pieces = [
        "[PAD]",
        "the",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *letters,
        *("##" + a for a in letters),
        "##ells",
        "x y",
    ]
    return HUB.WordPieceTokenizer(pieces, **options)


def byte_pair() -> Any:
    pairs = ["t h", "th e", "s h", "Ġ s", "e l", "el l"]
    bytes_ = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
    tokens = [*bytes_, "<|end|>", *(pair.replace(" ", "") for pair in pairs)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return HUB.BytePairTokenizer(vocabulary, pairs, unsplittable_tokens=["<|end|>"])


class Named(keras_hub.tokenizers.WordPieceTokenizer):
    """A tokenizer of a model, which names its control tokens itself."""

    def __init__(self, vocabulary=None, **options):
        self._add_special_token("[CLS]", "start_token")
        self._add_special_token("[SEP]", "end_token")
        self._add_special_token("[PAD]", "pad_token")
        super().__init__(vocabulary, **options)


MAKE: dict[str, Callable[[], Any]] = {
    "sentence_piece": sentence_piece,
    "word_piece": word_piece,
    "byte_pair": byte_pair,
    "bytes": partial(HUB.ByteTokenizer, lowercase=False),
    "code_points": partial(HUB.UnicodeCodepointTokenizer, lowercase=False, vocabulary_size=1000),
}
REVERSIBLE = {"byte_pair", "bytes"}


@pytest.fixture(scope="module", params=MAKE)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind) -> KerasHub:
    names = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]"} if kind.startswith("word_piece") else {}
    return KerasHub(MAKE[kind](), **names)


def decoded(strings: Any) -> list[str]:
    return [string.decode("utf-8", "strict") for string in strings.numpy()]


def test_ids_are_those_of_the_original_shifted(kind, tokenizer):
    original = MAKE[kind]()
    rows = tokenizer.tokenize(LINES)
    assert (rows.dtype, rows.row_splits.dtype) == (tf.int32, tf.int64)
    for row, expected in zip(rows.to_list(), original.tokenize(LINES), strict=True):  # KerasHub's Python
        np.testing.assert_array_equal(tokenizer.original_ids[row], np.array(expected))
    ids = tokenizer.original_ids
    assert len(ids) == tokenizer.vocabulary_size
    kept = ids[ids >= 0]
    assert len(set(kept)) == len(kept)
    assert (ids[4:] >= 0).all()
    if kind in REVERSIBLE:
        plain = [line.replace("<|end|>", "") for line in TEXTS]
        assert decoded(tokenizer.detokenize(tokenizer.tokenize(plain))) == plain
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(LINES))) == LINES


def test_text_never_gives_control_ids_nor_shows_them(tokenizer):
    for line in (*TEXTS, b"ab\xffc", b"\xf0\x9f", "\0", "\ud800"):
        ids = tokenizer.tokenize([line])
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids.values.numpy())
        decoded(tokenizer.detokenize(ids))
    assert tokenizer.tokenize([]).shape[0] == 0
    a, b = (int(ids[-1]) for ids in tokenizer.tokenize(["t", "s"]).to_list())
    plain = decoded(tokenizer.detokenize([[a, b], [b], [a, b]]))
    ids = [[BOS_ID, a, b, EOS_ID, PAD_ID], [BOS_ID, b, EOS_ID, a, a], [PAD_ID, BOS_ID, a, BOS_ID, b]]
    assert decoded(tokenizer.detokenize(ids)) == plain
    every = np.arange(-3, tokenizer.vocabulary_size + 9)[:, np.newaxis]
    shown = decoded(tokenizer.detokenize(every))
    assert not {"[PAD]", "[UNK]", "[CLS]", "<s>", "</s>", "<unk>", "<|end|>"} & set(shown)


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    loaded = text.load(tmp_path)
    assert isinstance(loaded, KerasHub)
    assert repr(loaded) == repr(tokenizer)
    np.testing.assert_array_equal(loaded.original_ids, tokenizer.original_ids)
    rows = tokenizer.tokenize(TEXTS)
    assert loaded.tokenize(TEXTS).to_list() == rows.to_list()
    assert decoded(loaded.detokenize(rows)) == decoded(tokenizer.detokenize(rows))
    path = tmp_path / "keras_hub.json"
    whole = path.read_text()
    for content in (whole[: len(whole) // 2], "[]", "{}", json.dumps(dict.fromkeys(json.loads(whole), 5))):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"keras_hub.json' is damaged"):
            text.load(tmp_path)


def test_any_token_survives_saving(tmp_path):
    odd = ["a b", "c\nd", "e\r", "f\u2028g"]
    KerasHub(HUB.WordPieceTokenizer(["[UNK]", *odd])).save(tmp_path)
    assert decoded(text.load(tmp_path).detokenize([[4], [5], [6], [7]])) == odd


def test_seeding_leaves_it_intact(kind, tokenizer):
    if kind == "byte_pair":  # nothing but tables, and slow to trace
        return
    before = tokenizer.tokenize(LINES).to_list()
    dataset = tf.data.Dataset.from_tensors(tf.constant(LINES)).map(tokenizer.tokenize)
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        tf.random.set_seed(seed)
        assert tokenizer.tokenize(LINES).to_list() == before
        assert next(iter(dataset)).to_list() == before


def test_it_makes_batches():
    tokenizer = KerasHub(word_piece())
    ((inputs, labels, _),) = ParallelText.from_pairs([(a, a) for a in LINES]).batches(
        tokenizer, tokens_per_batch=4096, shuffle=False, buckets=[64]
    )
    assert decoded(tokenizer.detokenize(inputs["source"])) == LINES
    assert decoded(tokenizer.detokenize(labels)) == LINES


def test_control_tokens_are_those_named_by_it_or_by_the_user(tmp_path):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = word_piece().get_vocabulary()
    expected = [vocabulary.index(name) for name in names]
    own = KerasHub(Named(vocabulary))
    assert own.original_ids[:4].tolist() == expected
    told = KerasHub(word_piece(), pad="[PAD]", bos="[CLS]", control_tokens=["[SEP]"])
    assert told.original_ids[:4].tolist() == [*expected[:3], -1]
    told.save(tmp_path)
    assert KerasHub.load(tmp_path).original_ids.tolist() == told.original_ids.tolist()
    assert own.vocabulary_size == told.vocabulary_size == len(vocabulary)
    assert KerasHub(word_piece()).vocabulary_size == len(vocabulary) + 3
    model = KerasHub(sentence_piece())
    assert model.original_ids[:4].tolist() == [-1, 0, 1, 2]
    spelled = KerasHub(word_piece(special_tokens=["[CLS]"], special_tokens_in_strings=True))
    assert spelled.tokenize(["[CLS]"]).to_list() == [[UNK_ID]]
    ended = KerasHub(byte_pair())
    assert ended.tokenize(["<|end|>"]).to_list() == [[UNK_ID]]


class Routes(tf.Module):
    def __init__(self, tokenizers: dict[str, KerasHub]):
        super().__init__()
        self.resources = [tokenizer.trackables for tokenizer in tokenizers.values()]
        for kind, tokenizer in tokenizers.items():
            spec = [tf.TensorSpec([None], tf.string, "text")]
            setattr(self, kind, tf.function(partial(route, tokenizer), spec, autograph=False))


def route(tokenizer: KerasHub, strings: Any) -> dict[str, Any]:
    ids = tokenizer.tokenize(strings)
    return {"ids": ids.to_tensor(-1), "text": tokenizer.detokenize(ids)}


def test_an_export_of_every_kind_runs_without_python(tmp_path):
    tokenizers = {}
    for kind, make in MAKE.items():
        KerasHub(make()).save(tmp_path / kind)
        loaded = text.load(tmp_path / kind)
        assert isinstance(loaded, KerasHub)
        tokenizers[kind] = loaded
        shutil.rmtree(tmp_path / kind)
    texts = [*(line.encode() for line in TEXTS), b"ab\xffc"]
    expected = {kind: route(each, tf.constant(texts)) for kind, each in tokenizers.items()}
    module = Routes(tokenizers)
    signatures = {kind: getattr(module, kind) for kind in MAKE}
    tf.saved_model.save(module, str(tmp_path / "export"), signatures=signatures)
    assert not refused_ops(str(tmp_path / "export"))
    moved = (tmp_path / "export").rename(tmp_path / "moved")
    answers = c_loader.run_signatures(moved, [(kind, {"text": texts}) for kind in MAKE])
    for kind, answer in zip(MAKE, answers, strict=True):
        assert answer["ids"] == expected[kind]["ids"].numpy().tolist(), kind
        assert answer["text"] == decoded(expected[kind]["text"]), kind


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (
            lambda: "bert",
            {},
            "tokenizer must be one of KerasHub's SentencePieceTokenizer, .* received 'bert'",
        ),
        (lambda: HUB.ByteTokenizer(sequence_length=5), {}, "leave sequence_length unset, .* received .*=5"),
        (lambda: word_piece(dtype="string"), {}, "tokenizer must give integers, received one with dtype='st"),
        (
            HUB.UnicodeCodepointTokenizer,
            {},
            "must have a vocabulary_size, received UnicodeCodepointTokenizer",
        ),
        (lambda: word_piece(split=False), {}, "must split text into words, received one with split=False"),
        (HUB.SentencePieceTokenizer, {}, "No vocabulary has been set for SentencePieceTokenizer"),
        (word_piece, {"bos": "<s>"}, "bos must be of the vocabulary of WordPieceTokenizer, received '<s>'"),
        (sentence_piece, {"pad": "<p>"}, "pad must be of the vocabulary of SentenceP.*, received '<p>'"),
        (HUB.ByteTokenizer, {"eos": "ab"}, "eos must be of the vocabulary of ByteTokenizer, received 'ab'"),
        (
            lambda: HUB.UnicodeCodepointTokenizer(input_encoding="UTF-16-BE", vocabulary_size=9),
            {},
            "tokenizer must use UTF-8, received one with input_encoding='UTF-16-BE'",
        ),
        (lambda: HUB.WordPieceTokenizer(["[UNK]"]), {}, "must have tokens besides control tokens"),
    ],
)
def test_what_does_not_fit_is_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        KerasHub(make(), **options)
