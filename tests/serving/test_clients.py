"""The example clients against a stand-in for TensorFlow Serving: its formats and a real export."""

import http.server
import json
import re
import runpy
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from served_families import STRATEGIES, make
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tokenizer_kinds import LINES, MAKE

FOLDER = Path(__file__).parents[2] / "examples" / "serving"
TEXTS = ["the sea", "", "他住在这附近"]


def call(signatures: Any, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Run a signature, or raise a KeyError or ValueError as the server refuses a request."""
    specs = signatures[name].structured_input_signature[1]
    return signatures[name](**{key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()})


def rest_handler(signatures: Any) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = 200
            answer: dict[str, Any] = {}
            model = re.fullmatch(r"/v1/models/(\w+):predict", self.path)
            if model is None or model[1] != "seq2seq":
                status, answer = 404, {"error": "Servable not found for request"}
            else:
                outputs = call(signatures, body["signature_name"], body["inputs"])
                lists = {name: tensor.numpy().tolist() for name, tensor in outputs.items()}
                answer = {"outputs": lists}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer, default=bytes.decode).encode())

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    return Handler


class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
    """The service of TensorFlow Serving, for one model."""

    def __init__(self, signatures: Any):
        self.signatures = signatures

    def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        if request.model_spec.name != "seq2seq":
            context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found for request")
        inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        outputs = call(self.signatures, request.model_spec.signature_name, inputs)
        response = predict_pb2.PredictResponse()
        for name, tensor in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
        return response


@pytest.fixture(scope="module")
def signatures(tmp_path_factory: pytest.TempPathFactory) -> Any:
    served = make("bahdanau", MAKE["words"](LINES), STRATEGIES["beam"])
    path = served.export(tmp_path_factory.mktemp("clients") / "base", samples=TEXTS[:1])
    loaded = tf.saved_model.load(path)
    yield loaded.signatures
    del loaded


@pytest.fixture(scope="module")
def addresses(signatures: Any) -> Iterator[dict[str, list[str]]]:
    """How each client is told where its server is."""
    web = http.server.ThreadingHTTPServer(("localhost", 0), rest_handler(signatures))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(signatures), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield {
        "rest_client": ["--url", f"http://localhost:{web.server_port}"],
        "grpc_client": ["--address", f"localhost:{port}"],
    }
    server.stop(None).wait()
    web.shutdown()
    web.server_close()


class Client:
    """A client's program, run in this process, which has imported TensorFlow already."""

    def __init__(self, name: str, where: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any):
        self.name, self.where = name, where
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[int, list[str], list[str]]:
        """Return the status, and the lines of output and of errors."""
        path = str(FOLDER / f"{self.name}.py")
        self.monkeypatch.setattr(sys, "argv", [path, *self.where, *arguments])
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(path, run_name="__main__")
        captured = self.capsys.readouterr()
        return int(stopped.value.code or 0), captured.out.splitlines(), captured.err.splitlines()


@pytest.fixture(params=["rest_client", "grpc_client"])
def client(request: Any, addresses: dict[str, list[str]], monkeypatch: Any, capsys: Any) -> Client:
    return Client(request.param, addresses[request.param], monkeypatch, capsys)


def test_a_client_prints_what_the_export_says(client: Client, signatures: Any) -> None:
    best = call(signatures, "translate_n_best", {"text": TEXTS})
    drawn = call(signatures, "sample", {"text": TEXTS, "seed": [7] * 3})
    lines = [
        f"{text}\t{score:.3f}\t{translation.decode()}"
        for text, row, scores in zip(TEXTS, best["translations"].numpy(), best["scores"].numpy(), strict=True)
        for translation, score in zip(row, scores, strict=True)
    ]
    assert client("--n-best", *TEXTS) == (0, lines, [])
    assert client(*TEXTS) == (0, lines[::3], [])
    status, out, _ = client("--sample", "7", *TEXTS)
    assert status == 0
    assert [line.split("\t")[2] for line in out] == [text.decode() for text in drawn["translation"].numpy()]


def test_a_client_says_what_went_wrong_in_one_line(client: Client) -> None:
    status, out, (line,) = client("--model", "other", "a")
    assert (status, out) == (1, [])
    assert line.endswith(": Servable not found for request")
    with socket.socket() as silent:  # takes the connection and never answers
        silent.bind(("localhost", 0))
        silent.listen()
        where = f"localhost:{silent.getsockname()[1]}"
        client.where = ["--url", f"http://{where}"] if client.name == "rest_client" else ["--address", where]
        status, out, (line,) = client("--timeout", "1", "a")
    assert (status, out) == (1, [])
    assert re.search("timed out|DEADLINE_EXCEEDED|UNAVAILABLE", line)


def test_clients_do_without_this_library() -> None:
    for path in FOLDER.glob("*.py"):
        assert "keras_seq2seq" not in path.read_text()
