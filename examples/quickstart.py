"""Train an English-Chinese translator from random weights, measure it, and serve it.

On real sentence pairs from Tatoeba (see data/tatoeba), on two CPU cores.
"""

import subprocess
import sys
from pathlib import Path

import keras

import keras_seq2seq as ks

DATA = Path(__file__).parent / "data" / "tatoeba"
EPOCHS, TOKENS = 12, 2048
SENTENCES = [
    "Do you want a drink?",
    "We had a party last night.",
    "I don't know what to say.",
    "Tom and Mary live in Boston.",
]
# What a server does, in a process that knows nothing of this library.
SERVE = """
import sys, tensorflow as tf, tensorflow_text
translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for text in translate(text=tf.constant(sys.argv[2:]))["translation"].numpy():
    print("   ", text.decode())
"""

keras.utils.set_random_seed(1)

# Text: pairs of sentences, a vocabulary for each language, batches of about as many tokens each.
train = ks.data.ParallelText.from_tsv(DATA / "train.en-cmn.tsv.gz")
english = ks.text.SentencePiece.train(train.sources(), vocabulary_size=4000)
chinese = ks.text.SentencePiece.train(train.targets(), vocabulary_size=4000)
batches = train.batches(english, chinese, tokens_per_batch=TOKENS, fixed_shapes=True, seed=1)

# Model: a small Transformer, trained with teacher forcing.
model = ks.models.transformer_seq2seq(
    english.vocabulary_size, chinese.vocabulary_size, size="tiny", num_layers=2, feed_forward_dim=512
)
steps = EPOCHS * len(batches)
rate = keras.optimizers.schedules.CosineDecay(0.0, steps, warmup_target=4e-3, warmup_steps=400)
model.compile(
    keras.optimizers.Adam(rate, beta_2=0.98),
    loss=ks.training.SmoothedCrossentropy(0.1),
    weighted_metrics=[ks.training.TokenAccuracy()],
    jit_compile=True,
)
model.fit(batches, epochs=EPOCHS)

# Use: strings in, strings out.
translator = ks.Translator(model, english, chinese, ks.search.Beam(4))
test = ks.data.ParallelText.from_tsv(DATA / "test.en-cmn.tsv.gz")
print(ks.evaluate.scores(translator(list(test.sources())), list(test.targets()), tokenize="zh"))
for english_text, chinese_text in zip(SENTENCES, translator(SENTENCES), strict=True):
    print(f"{english_text}  ->  {chinese_text}")

# Serve: one artefact, from raw text to text.
path = translator.export("runs/quickstart")
print(f"Exported to {path}; a new process translates with it:")
subprocess.run([sys.executable, "-c", SERVE, str(path), *SENTENCES], check=True)
