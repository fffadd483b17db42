"""Run a SavedModel through TensorFlow's C interface alone, as TensorFlow Serving would.

Run as a program, this file never imports tensorflow, keras or keras_seq2seq: it loads the
shared library that the TensorFlow wheel ships, switches XLA off as stock TensorFlow Serving
does, adds tensorflow-text's operations, and reads requests from standard input and writes the
answers to standard output as JSON:

    python tests/c_loader.py SAVED_MODEL_DIR < requests.json > answers.json

    [{"signature": "serving_default", "inputs": {"text": ["a"]}}]  ->  [{"outputs": {...}}]

A request that fails is answered by `{"error": "..."}`. Strings travel as UTF-8 with Python's
surrogateescape, so that invalid bytes can be sent and noticed. From a test, call `run_signature`.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from ctypes import (
    CDLL,
    POINTER,
    RTLD_GLOBAL,
    Structure,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_void_p,
    memmove,
    string_at,
)
from pathlib import Path
from typing import Any

import numpy as np

# TensorFlow's DataType -> NumPy's.
DTYPES: dict[int, Any] = {
    1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 6: np.int8, 9: np.int64, 10: np.bool_,
    19: np.float16,
}  # fmt: skip
STRING, STRING_SIZE = 7, 24

Requests = Sequence[tuple[str, dict[str, Any]]]


class CLoaderError(RuntimeError):
    """The C interface could not load the model, or a request failed in it."""


class Output(Structure):
    """`TF_Output`: an operation of the graph and which of its outputs."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


class Buffer(Structure):
    """`TF_Buffer`: bytes owned by TensorFlow."""

    _fields_ = (("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p))


# ---- in the test's process


def run_signature(directory: Any, signature: str, inputs: dict[str, Any], **options: bool) -> dict[str, Any]:
    """Call one signature of a SavedModel in a process without Python's TensorFlow.

    Args:
        directory: the SavedModel.
        signature: the name of a signature.
        inputs: nested lists (or arrays) of strings, bytes or numbers by input name.
        options: `text_ops=False` leaves tensorflow-text's operations out, `xla=True` leaves XLA on.

    Returns:
        Nested lists by output name.

    Raises:
        CLoaderError: with TensorFlow's message.
    """
    return run_signatures(directory, [(signature, inputs)], **options)[0]


def run_signatures(
    directory: Any, requests: Requests, *, text_ops: bool = True, xla: bool = False
) -> list[dict[str, Any]]:
    """Call signatures of one SavedModel one after another, loading it once; see `run_signature`."""
    command = [sys.executable, "-I", str(Path(__file__).resolve()), str(directory)]
    command += ["--no-text-ops"] * (not text_ops) + ["--xla"] * xla
    body = [{"signature": signature, "inputs": _plain(inputs)} for signature, inputs in requests]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise CLoaderError(f"exit status {done.returncode}: {done.stderr[-4000:]}")
    answers = json.loads(done.stdout)
    for answer in answers:
        if "error" in answer:
            raise CLoaderError(answer["error"])
    return [answer["outputs"] for answer in answers]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


# ---- in the process without TensorFlow's Python


def main() -> None:
    """Answer the requests on standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--no-text-ops", action="store_true")
    parser.add_argument("--xla", action="store_true")
    arguments = parser.parse_args()
    requests = json.load(sys.stdin)
    try:
        model = SavedModel(arguments.directory, text_ops=not arguments.no_text_ops, xla=arguments.xla)
    except CLoaderError as error:
        answers = [{"error": str(error)}] * len(requests)
    else:
        answers = [model.answer(request) for request in requests]
    assert not {"tensorflow", "tensorflow_text", "keras", "keras_seq2seq"} & set(sys.modules)
    json.dump(answers, sys.stdout)


class SavedModel:
    """A SavedModel in a session of the C interface."""

    def __init__(self, directory: str, *, text_ops: bool, xla: bool) -> None:
        self.tf = load_tensorflow(text_ops=text_ops, xla=xla)
        self.status = self.tf.TF_NewStatus()
        self.graph = self.tf.TF_NewGraph()
        tags = (c_char_p * 1)(b"serve")
        meta_graph = self.tf.TF_NewBuffer()
        self.session = self.tf.TF_LoadSessionFromSavedModel(
            self.tf.TF_NewSessionOptions(),
            None,
            directory.encode(),
            tags,
            1,
            self.graph,
            meta_graph,
            self.status,
        )
        self.check()
        self.signatures = read_signatures(string_at(meta_graph.contents.data, meta_graph.contents.length))

    def check(self) -> None:
        """Raise what the last call reported."""
        if self.tf.TF_GetCode(self.status):
            raise CLoaderError(self.tf.TF_Message(self.status).decode("utf-8", "replace"))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request by its outputs or by an error."""
        try:
            return {"outputs": self.run(request["signature"], request["inputs"])}
        except CLoaderError as error:
            return {"error": str(error)}

    def run(self, signature: str, values: dict[str, Any]) -> dict[str, Any]:
        """Feed the inputs of a signature and fetch its outputs."""
        if signature not in self.signatures:
            raise CLoaderError(f"no signature {signature!r}, but {sorted(self.signatures)}")
        inputs, outputs = self.signatures[signature]
        if set(values) != set(inputs):
            raise CLoaderError(f"{signature} takes the inputs {sorted(inputs)}, not {sorted(values)}")
        names, fetches = list(values), list(outputs)
        fed = (c_void_p * len(names))(*(self.tensor(values[name], inputs[name][1]) for name in names))
        got = (c_void_p * len(fetches))()
        self.tf.TF_SessionRun(
            self.session, None, self.places([inputs[name] for name in names]), fed, len(names),
            self.places([outputs[name] for name in fetches]), got, len(fetches), None, 0, None, self.status,
        )  # fmt: skip
        for tensor in fed:
            self.tf.TF_DeleteTensor(tensor)
        self.check()
        return {name: self.value(tensor) for name, tensor in zip(fetches, got, strict=True)}

    def places(self, tensors: list[tuple[str, int]]) -> Any:
        """Find tensors such as `serving_default_text:0` in the graph."""
        found = []
        for name, _ in tensors:
            operation, _, index = name.partition(":")
            found.append(
                Output(self.tf.TF_GraphOperationByName(self.graph, operation.encode()), int(index or 0))
            )
        return (Output * len(found))(*found)

    def tensor(self, value: Any, dtype: int) -> Any:
        """Make a tensor of a nested list."""
        array = np.array(value, dtype=object if dtype == STRING else DTYPES[dtype])
        size = array.size * STRING_SIZE if dtype == STRING else array.nbytes
        shape = (c_int64 * array.ndim)(*array.shape)
        tensor = self.tf.TF_AllocateTensor(dtype, shape, array.ndim, size)
        data = self.tf.TF_TensorData(tensor)
        if dtype != STRING:
            memmove(data, np.ascontiguousarray(array).ctypes.data, size)
            return tensor
        for i, text in enumerate(array.ravel()):
            encoded = text.encode("utf-8", "surrogateescape")
            self.tf.TF_StringInit(data + i * STRING_SIZE)
            self.tf.TF_StringCopy(data + i * STRING_SIZE, encoded, len(encoded))
        return tensor

    def value(self, tensor: Any) -> Any:
        """Read a tensor into a nested list, and give it back."""
        dtype, data = self.tf.TF_TensorType(tensor), self.tf.TF_TensorData(tensor)
        shape = [self.tf.TF_Dim(tensor, axis) for axis in range(self.tf.TF_NumDims(tensor))]
        if dtype == STRING:
            places = [data + i * STRING_SIZE for i in range(int(np.prod(shape)))]
            texts = [
                string_at(self.tf.TF_StringGetDataPointer(place), self.tf.TF_StringGetSize(place))
                for place in places
            ]
            array = np.empty(len(texts), dtype=object)
            array[:] = [text.decode("utf-8", "surrogateescape") for text in texts]
        else:
            array = np.frombuffer(string_at(data, self.tf.TF_TensorByteSize(tensor)), DTYPES[dtype])
        self.tf.TF_DeleteTensor(tensor)
        return array.reshape(shape).tolist()


def load_tensorflow(*, text_ops: bool, xla: bool) -> Any:
    """Load the C library, with XLA switched off, and tensorflow-text's operations into it."""
    tf = CDLL(str(package_folder("tensorflow") / "libtensorflow_cc.so.2"), mode=RTLD_GLOBAL)
    for name in (
        "NewStatus", "NewGraph", "NewSessionOptions", "LoadSessionFromSavedModel", "LoadLibrary",
        "GraphOperationByName", "AllocateTensor", "TensorData", "StringGetDataPointer",
    ):  # fmt: skip
        getattr(tf, f"TF_{name}").restype = c_void_p
    tf.TF_NewBuffer.restype = POINTER(Buffer)
    tf.TF_Message.restype = c_char_p
    for name in ("TensorByteSize", "StringGetSize"):
        getattr(tf, f"TF_{name}").restype = c_size_t
    tf.TF_Dim.restype = c_int64
    pointers_first(tf)
    if not xla:
        tf._ZN10tensorflow21DisableXlaCompilationEv()
    if text_ops:
        status = tf.TF_NewStatus()
        for library in sorted(package_folder("tensorflow_text").glob("python/ops/*.so")):
            tf.TF_LoadLibrary(str(library).encode(), status)
            if tf.TF_GetCode(status):
                raise CLoaderError(tf.TF_Message(status).decode())
    return tf


def pointers_first(tf: Any) -> None:
    """Declare the arguments; ctypes would cut undeclared pointers to 32 bits."""
    p, n = c_void_p, c_int
    arguments: dict[str, list[Any]] = {
        "LoadLibrary": [c_char_p, p],
        "GetCode": [p],
        "Message": [p],
        "LoadSessionFromSavedModel": [p, p, c_char_p, p, n, p, POINTER(Buffer), p],
        "SessionRun": [p, p, p, p, n, p, p, n, p, n, p, p],
        "GraphOperationByName": [p, c_char_p],
        "AllocateTensor": [n, p, n, c_size_t],
        "DeleteTensor": [p],
        "TensorType": [p],
        "TensorData": [p],
        "TensorByteSize": [p],
        "NumDims": [p],
        "Dim": [p, n],
        "StringInit": [p],
        "StringCopy": [p, c_char_p, c_size_t],
        "StringGetDataPointer": [p],
        "StringGetSize": [p],
    }
    for name, types in arguments.items():
        getattr(tf, f"TF_{name}").argtypes = types


def package_folder(name: str) -> Path:
    """Find an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise CLoaderError(f"{name} is not installed")
    return Path(spec.origin).parent


# ---- protocol buffers, as far as a signature needs them

Signature = tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]


def read_signatures(meta_graph: bytes) -> dict[str, Signature]:
    """Read `MetaGraphDef.signature_def`: signature -> (inputs, outputs), each name -> (tensor, dtype)."""
    signatures = {}
    for key, value in map_entries(meta_graph, 5):
        if key != "__saved_model_init_op":
            signatures[key] = (read_tensors(value, 1), read_tensors(value, 2))
    return signatures


def read_tensors(signature: bytes, field: int) -> dict[str, tuple[str, int]]:
    """Read the inputs (field 1) or the outputs (field 2) of a `SignatureDef`."""
    tensors = {}
    for key, info in map_entries(signature, field):
        fields = dict(wire_fields(info))
        tensors[key] = (fields[1].decode(), fields.get(2, 0))
    return tensors


def map_entries(message: bytes, field: int) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of a `map<string, message>` field."""
    for number, entry in wire_fields(message):
        if number == field:
            fields = dict(wire_fields(entry))
            yield fields[1].decode(), fields.get(2, b"")


def wire_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (field number, value) of a message in protocol buffers' wire format."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        else:
            size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
            yield number, message[position : position + size]
            position += size


if __name__ == "__main__":
    main()
