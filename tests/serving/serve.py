"""Run a SavedModel in a process that knows TensorFlow and tensorflow-text, and nothing of this library.

    python tests/serving/serve.py SAVED_MODEL_DIR < requests.json > answers.json

Requests and answers are as in tests/c_loader.py.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


def run_signatures(directory: Any, requests: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Call signatures of one SavedModel one after another in a new process; errors are answers, too."""
    body = [{"signature": signature, "inputs": inputs} for signature, inputs in requests]
    command = [sys.executable, "-I", __file__, str(directory)]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    """Answer the requests on standard input."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    signatures = tf.saved_model.load(sys.argv[1]).signatures
    answers = []
    for request in json.load(sys.stdin):
        try:
            signature = signatures[request["signature"]]
            specs = signature.structured_input_signature[1]
            inputs = {
                # Numbers for text stay numbers, to be refused.
                name: tf.constant(
                    value, None if value and numbers_for_text(value, specs[name]) else specs[name].dtype
                )
                for name, value in request["inputs"].items()
            }
            outputs = {name: value.numpy().tolist() for name, value in signature(**inputs).items()}
            answers.append(decoded(outputs))
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
    assert "keras_seq2seq" not in sys.modules
    json.dump(answers, sys.stdout)


def numbers_for_text(value: list, spec: Any) -> bool:
    """Say whether an input that takes strings was given something else."""
    return spec.dtype == "string" and not isinstance(value[0], str)


def decoded(value: Any) -> Any:
    """Turn bytes into text, strictly."""
    if isinstance(value, dict):
        return {name: decoded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
