"""Train a character language model on one text file, with the CPU setting of nanoGPT, and let it write.

    python examples/language_model.py input.txt.gz

The file is tiny Shakespeare for the figures here; any text will do. The first 90 % are for training. Two CPU
cores take 56 s for 2000 steps, and the loss on the rest is 1.782 (1.897 with GPT-2's learned positions).
"""

import sys
import time

import keras
import tensorflow as tf

import keras_seq2seq as ks

BLOCK, BATCH, STEPS = 64, 12, 2000
PROMPTS = ["", "ROMEO:", "What is the city but the people"]

keras.utils.set_random_seed(1)
train, valid = ks.data.Text(sys.argv[1]).split(0.9)
characters = ks.text.Characters.train(train.pieces())
blocks = train.blocks(characters, BLOCK, BATCH, steps=STEPS, seed=1)

model = ks.models.transformer_lm(
    characters.vocabulary_size,
    num_layers=4,
    model_dim=128,
    num_heads=4,
    dropout=0.0,
    positions="rotary",
)
rate = keras.optimizers.schedules.CosineDecay(
    0.0, STEPS - 100, alpha=0.1, warmup_target=1e-3, warmup_steps=100
)
optimizer = keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0)
optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
model.compile(optimizer, ks.training.SmoothedCrossentropy(), jit_compile=True, steps_per_execution=20)

start = time.time()
model.fit(blocks, epochs=1)
print(f"{STEPS} steps in {time.time() - start:.0f} s")

# Every character of the validation text is predicted once.
held_out = valid.blocks(characters, BLOCK, 256, shuffle=False)
print(f"validation loss {model.evaluate(held_out, verbose=0, return_dict=True)['loss']:.3f}")

# Blocks have no end, so that completions stop at the limit: what the model saw in one piece is 64 characters.
generator = ks.Generator(
    model, characters, ks.search.Beam(4), max_new_tokens=BLOCK // 2, max_prompt_length=BLOCK // 2
)
for prompt, completion in zip(PROMPTS, generator(PROMPTS), strict=True):
    print(repr(prompt), "->", repr(completion))
score, count = generator.score("To be, or not to be, that is the question:\n")
print(f"A line of Hamlet's: {score / count:.2f} a character")

# Export: one artefact from text to text, which runs without this library.
served = tf.saved_model.load(generator.export("runs/language_model"))
completion = served.signatures["serving_default"](text=tf.constant(PROMPTS))["completion"]
print("The export writes", [text.decode() for text in completion.numpy()])
