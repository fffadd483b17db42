"""Ask a TensorFlow Serving over gRPC; needs `pip install grpcio tensorflow-serving-api`.

python grpc_client.py "How are you?" "Good night."
python grpc_client.py --n-best "How are you?"
python grpc_client.py --sample 7 "How are you?"
"""

import argparse
import sys
from typing import Any

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


def predict(
    address: str, model: str, signature: str, inputs: dict[str, Any], timeout: float = 30.0
) -> dict[str, Any]:
    """Call a signature; inputs and outputs are arrays, one entry for each text. Text comes back as bytes.

    Raises:
        grpc.RpcError: no server, no answer in time, or an error of the server.
    """
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, values in inputs.items():
        dtype = tf.int64 if name == "seed" else tf.string
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values, dtype))
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        answer = stub.Predict(request, timeout=timeout)
    return {name: tf.make_ndarray(proto) for name, proto in answer.outputs.items()}


def main() -> int:
    """Print a translation, or the N best, for each text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--address", default="localhost:8500")
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
        outputs = predict(options.address, options.model, signature, inputs, options.timeout)
    except grpc.RpcError as error:
        print(f"{error.code().name}: {error.details()}", file=sys.stderr)
        return 1
    if options.n_best:
        for text, row, scores in zip(options.texts, outputs["translations"], outputs["scores"], strict=True):
            for translation, score in zip(row, scores, strict=True):
                print(text, f"{score:.3f}", translation.decode(), sep="\t")
    else:
        for text, translation, score in zip(
            options.texts, outputs["translation"], outputs["score"], strict=True
        ):
            print(text, f"{score:.3f}", translation.decode(), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
