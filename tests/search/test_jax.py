"""The search on the JAX backend, compiled by it: the same tokens from the same file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import families
import numpy as np
from families import LIMIT, NAMES, STRATEGIES

ROWS = 16

IN_JAX = """
import json, sys, jax, keras, numpy as np
assert keras.backend.backend() == "jax"
import keras_seq2seq as ks
from keras_seq2seq.search.top_k import top_k
assert "tensorflow" not in sys.modules
directory, limit = sys.argv[1], int(sys.argv[2])
beam, sampling = ks.search.Beam(5, n_best=5, length_penalty=0.6), ks.search.Sampling(2, top_p=0.9, seed=5)
strategies = {"greedy": ks.search.Greedy(), "beam": beam, "sampling": sampling}
logits = np.random.default_rng(0).normal(size=(3, 2000)).astype("float32")
_, ids = jax.jit(lambda x: top_k(x, 10))(logits)
assert (np.asarray(ids) == np.argsort(-logits, axis=-1, kind="stable")[:, :10]).all()
out = {}
for name, inputs in json.load(sys.stdin).items():
    model = keras.saving.load_model(f"{directory}/{name}.keras")
    inputs = {key: np.array(rows, "int32") for key, rows in inputs.items()}
    seeds = np.arange(len(next(iter(inputs.values()))), dtype="int32")
    for kind, strategy in strategies.items():
        run = jax.jit(lambda given: ks.search.search(model, given, strategy, max_length=limit, seeds=seeds))
        result = run(inputs)
        parts = result.tokens, result.scores, result.token_scores
        out[f"{name} {kind}"] = [np.asarray(part).tolist() for part in parts]
print(json.dumps(out))
"""


def test_jax_gives_the_same_for_all_models_and_strategies(tmp_path: Path) -> None:
    made = {name: families.make(name) for name in NAMES}
    inputs: dict[str, dict[str, np.ndarray]] = {}
    for name, family in made.items():
        family.model.save(tmp_path / f"{name}.keras")
        inputs[name] = {family.varying: family.rows[:ROWS]}
    # Forced prefixes of unequal length for one of those that have a source.
    inputs["rnn"]["target"] = np.tile(np.array([[2, 0, 0], [2, 5, 9]], "int32"), (ROWS // 2, 1))
    # What is compiled runs once: optimising it would take longer than running it.
    quick = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    done = subprocess.run(
        [sys.executable, "-c", IN_JAX, str(tmp_path), str(LIMIT)],
        input=json.dumps(inputs, default=np.ndarray.tolist),
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", **quick},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    assert len(theirs) == len(NAMES) * len(STRATEGIES)
    for name, family in made.items():
        for kind, strategy in STRATEGIES.items():
            ours = family.decode(inputs[name], strategy)
            tokens, scores, token_scores = theirs[f"{name} {kind}"]
            np.testing.assert_array_equal(ours.tokens, tokens)
            np.testing.assert_allclose(ours.scores, scores, atol=1e-4)
            np.testing.assert_allclose(ours.token_scores, token_scores, atol=1e-4)
