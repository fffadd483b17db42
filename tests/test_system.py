"""The whole path on a small task: learn it, use it, export it, and serve it where the library never was."""

import random
from pathlib import Path

import keras
from c_loader import run_signature

import keras_seq2seq as ks


def sentences(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdefgh", k=draw.randint(2, 7))) for _ in range(count)]


def test_learn_to_reverse_and_serve_it(tmp_path: Path) -> None:
    """Held-out strings come out reversed, in Python and through TensorFlow's C interface without XLA."""
    keras.utils.set_random_seed(1)
    held_out = sorted(set(sentences(300, 2)))
    train = [text for text in sentences(6000, 1) if text not in held_out]
    pairs = ks.data.ParallelText.from_pairs([(text, text[::-1]) for text in train])
    letters = ks.text.Characters.train(pairs.sources())
    batches = pairs.batches(letters, tokens_per_batch=1024, fixed_shapes=True, seed=1)
    model = ks.models.transformer_seq2seq(
        letters.vocabulary_size,
        num_layers=1,
        model_dim=64,
        feed_forward_dim=128,
        num_heads=4,
        size="tiny",
        dropout=0.0,
    )
    epochs = 12
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, epochs * len(batches), warmup_target=4e-3, warmup_steps=100
    )
    model.compile(
        keras.optimizers.Adam(rate, beta_2=0.98),
        loss=ks.training.SmoothedCrossentropy(),
        weighted_metrics=[ks.training.TokenAccuracy()],
        jit_compile=True,
    )
    history = model.fit(batches, epochs=epochs, verbose=0).history
    assert history["loss"][-1] < 0.1 * history["loss"][0]

    translator = ks.Translator(model, letters, strategy=ks.search.Beam(3))
    expected = [text[::-1] for text in held_out]
    answers = translator(held_out)
    assert ks.evaluate.exact_match(answers, expected).value > 95

    path = translator.export(tmp_path)
    served = run_signature(path, "serving_default", {"text": held_out[:20]})
    assert served["translation"] == answers[:20]
