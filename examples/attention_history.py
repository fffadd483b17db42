"""From one vector to attention: four models, one data set, the same time for each.

    python examples/attention_history.py DIR --minutes 20

DIR holds the lowercased tokenised files of Multi30k, `train.lc.norm.tok.en.gz` and so on. Prints BLEU on
test_2016_flickr and draws it by the length of the source, to `runs/attention_history/`.
"""

import argparse
import math
import time
from pathlib import Path

import keras

import keras_seq2seq as ks


class Clock(keras.callbacks.Callback):
    """Stop when the time is over; until then the rate rises for 3 % of it and falls to 0 along a cosine."""

    def __init__(self, minutes, peak):
        super().__init__()
        self.seconds, self.peak, self.start = 60 * minutes, peak, math.inf

    def on_train_batch_begin(self, batch, logs=None):
        """Set the rate by the clock, which starts after the first step, the one that is traced."""
        gone = min(max((time.monotonic() - self.start) / self.seconds, 0.0), 1.0)
        self.model.optimizer.learning_rate = self.peak * min(
            gone / 0.03 + 1e-3, (1 + math.cos(math.pi * gone)) / 2
        )

    def on_train_batch_end(self, batch, logs=None):
        """Look at the clock."""
        self.start = min(self.start, time.monotonic())
        self.model.stop_training = time.monotonic() - self.start > self.seconds


def rnn(size, attention, cell="lstm"):
    """Build a recurrent model with one layer of 256 units on either side."""
    return ks.models.rnn_seq2seq(
        size, cell=cell, units=256, encoder_layers=1, decoder_layers=1, attention=attention, dropout=0.2,
        share_embeddings=True, tie_embeddings=True,
    )  # fmt: skip


MODELS = {  # builder, peak of the learning rate, whether XLA pays
    "no attention": (lambda size: rnn(size, None), 2e-3, False),
    "Bahdanau": (lambda size: rnn(size, ks.layers.BahdanauAttention(256), cell="gru"), 2e-3, False),
    "Luong": (lambda size: rnn(size, ks.layers.LuongAttention("general")), 2e-3, False),
    "Transformer": (lambda size: ks.models.transformer_seq2seq(size, size="tiny", dropout=0.2), 4e-3, True),
}
parser = argparse.ArgumentParser(description="Train four models of translation for the same time each.")
parser.add_argument("data", type=Path, metavar="DIR")
parser.add_argument("--minutes", type=float, default=20.0, help="for each model (default: %(default)s)")
arguments = parser.parse_args()
output = Path("runs/attention_history")
output.mkdir(parents=True, exist_ok=True)

train, test = (
    ks.data.ParallelText(*(arguments.data / f"{split}.lc.norm.tok.{side}.gz" for side in ("en", "de")))
    for split in ("train", "test_2016_flickr")
)
pieces = ks.text.SentencePiece.train(train.sources(), train.targets(), vocabulary_size=5000, model_type="bpe")
batches = train.batches(pieces, tokens_per_batch=2048, fixed_shapes=True, max_buckets=4, seed=1)
sources, references = list(test.sources()), list(test.targets())
lengths, found = [len(source.split()) for source in sources], {}
for name, (build, peak, jit_compile) in MODELS.items():
    keras.utils.set_random_seed(1)
    model = build(pieces.vocabulary_size)
    optimizer = keras.optimizers.Adam(peak, beta_2=0.98, global_clipnorm=1.0)
    model.compile(optimizer, ks.training.SmoothedCrossentropy(0.1), jit_compile=jit_compile)
    model.fit(batches, epochs=1000, callbacks=[Clock(arguments.minutes, peak)], verbose=2)
    hypotheses = ks.Translator(model, pieces, strategy=ks.search.Beam(5))(sources)
    score = ks.evaluate.bleu(hypotheses, references, tokenize="none")
    found[name] = ks.evaluate.bleu_by_length(hypotheses, references, lengths, tokenize="none")
    print(f"{name:<14}{model.count_params():>12,} weights{score.value:>7.2f} BLEU, by length:",
          *(f"{part.score.value:.1f}" for part in found[name]), flush=True)  # fmt: skip
ks.plots.scores_by_length(found).figure.savefig(output / "bleu_by_length.png")
