"""An attention score of one's own: the cosine of query and key, times a temperature that is learned.

Reads the letters of the CMU dictionary's words and writes their phonemes. One core of an Intel Xeon reaches a
phoneme error rate of 9.9 % on val in three minutes; pronunciation.py trains a larger model to the end.
"""

import time
from pathlib import Path

import keras
from keras import ops

import keras_seq2seq as ks

DATA = Path(__file__).parent / "data" / "cmudict"
OUTPUT = Path("runs/custom_attention")


@keras.saving.register_keras_serializable(package="examples")
class CosineAttention(ks.layers.ScoreAttention):
    """score(q, k) = t cos(q, W k)."""

    def build(self, query_shape, value_shape, key_shape=None):
        """Make W and t."""
        self.key_dense = keras.layers.Dense(query_shape[-1], use_bias=False)
        self.key_dense.build(key_shape or value_shape)
        self.temperature = self.add_weight(shape=(), initializer=keras.initializers.Constant(5.0))

    def project_key(self, key):
        """Do what is done once for each source, not for each step."""
        return ops.normalize(self.key_dense(key))

    def score(self, query, projected):
        """Compare all queries with all keys."""
        return self.temperature * ops.einsum("btk,bsk->bts", ops.normalize(query), projected)


def read(name):
    """Read words and phonemes; a word's letters stand together."""
    lines = ks.data.ParallelText.from_tsv(DATA / f"{name}.tsv.gz")
    return [(letters.replace(" ", ""), phonemes) for letters, phonemes in lines.pairs()]


keras.utils.set_random_seed(1)
train, valid = ks.data.ParallelText.from_pairs(read("train")), read("val")
letters, phonemes = ks.text.Characters.train(train.sources()), ks.text.Words.train(train.targets())
batches = train.batches(letters, phonemes, tokens_per_batch=2048, buckets=[8, 12, 16, 40], seed=1)
model = ks.models.rnn_seq2seq(
    letters.vocabulary_size,
    phonemes.vocabulary_size,
    cell="gru",
    encoder_layers=1,
    decoder_layers=1,
    units=128,
    attention=CosineAttention(),
    input_feeding=False,
)
model.compile(keras.optimizers.Adam(3e-3, global_clipnorm=1.0), ks.training.SmoothedCrossentropy())
start = time.time()
model.fit(batches, epochs=3, verbose=2)
temperature = float(model.decoder.attention.temperature)
print(f"Trained in {(time.time() - start) / 60:.1f} min; the temperature is {temperature:.1f} now")

translator = ks.Translator(model, letters, phonemes, strategy=ks.search.Beam(4))
words, right = zip(*valid, strict=True)
found = translator(list(words))
print(f"Phoneme error rate on val: {ks.evaluate.error_rate(found, right).value:.1f} %")
((best,),) = translator.translate(["transformer"], return_alignment=True)
print(best.text)
axes = ks.plots.attention_heatmap(best.alignment, best.source_pieces, best.pieces)
OUTPUT.mkdir(parents=True, exist_ok=True)
axes.figure.savefig(OUTPUT / "attention.png")
