"""Ask a TensorFlow Serving over REST, with nothing but the standard library.

python rest_client.py "How are you?" "Good night."
python rest_client.py --n-best "How are you?"
python rest_client.py --sample 7 "How are you?"
"""

import argparse
import contextlib
import json
import sys
import urllib.error
import urllib.request
from typing import Any


class ServerError(Exception):
    """What went wrong, in one sentence."""


def predict(
    url: str, model: str, signature: str, inputs: dict[str, list[Any]], timeout: float = 30.0
) -> dict[str, list[Any]]:
    """Call a signature; inputs and outputs are columns, one entry for each text.

    Raises:
        ServerError: no server, no answer in time, or an error of the server.
    """
    body = json.dumps({"signature_name": signature, "inputs": inputs}).encode()
    request = urllib.request.Request(
        f"{url}/v1/models/{model}:predict", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)["outputs"]
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["error"]
        raise ServerError(f"{error.code}: {text}") from error
    except (OSError, ValueError, KeyError) as error:  # a timeout is an OSError, too
        raise ServerError(f"no answer from {url}: {error}") from error


def main() -> int:
    """Print a translation, or the N best, for each text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--url", default="http://localhost:8501")
    parser.add_argument("--model", default="seq2seq")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--n-best", action="store_true", help="all hypotheses of the search, best first")
    parser.add_argument("--sample", type=int, metavar="SEED", help="draw one translation of each text")
    options = parser.parse_args()
    signature, inputs = "translate", {"text": options.texts}
    if options.n_best:
        signature = "translate_n_best"
    elif options.sample is not None:
        signature, inputs["seed"] = "sample", [options.sample] * len(options.texts)
    try:
        outputs = predict(options.url, options.model, signature, inputs, options.timeout)
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    if options.n_best:
        for text, row, scores in zip(options.texts, outputs["translations"], outputs["scores"], strict=True):
            for translation, score in zip(row, scores, strict=True):
                print(text, f"{score:.3f}", translation, sep="\t")
    else:
        for text, translation, score in zip(
            options.texts, outputs["translation"], outputs["score"], strict=True
        ):
            print(text, f"{score:.3f}", translation, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
