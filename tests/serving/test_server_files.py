"""The files of a server are what TensorFlow Serving's messages say: parsed, not only looked at."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2
from tensorflow_serving.config import model_server_config_pb2

from keras_seq2seq.serving import write_server_files


def batching_parameters() -> Any:
    """An empty BatchingParameters, which tensorflow-serving-api lacks.

    The fields are those of tensorflow_serving/servables/tensorflow/session_bundle_config.proto.
    """
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="batching.proto", package="stand_in", syntax="proto3", dependency=[wrappers_pb2.DESCRIPTOR.name]
    )
    message = file.message_type.add(name="BatchingParameters")
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    for number, name in enumerate(names, 1):
        of = ".google.protobuf.Int64Value"
        message.field.add(
            name=name, number=number, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=of
        )
    message.field.add(name="allowed_batch_sizes", number=6, label=field.LABEL_REPEATED, type=field.TYPE_INT64)
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stand_in.BatchingParameters"))()


def test_the_files_parse_and_say_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "models.config").write_text("old")
    models, batching = write_server_files(
        tmp_path, name="en-zh", versions=3, batch_sizes=(2, 16), timeout_micros=500, threads=5
    )
    config = text_format.Parse(Path(models).read_text(), model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("en-zh", "/models/en-zh", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 3
    parameters = text_format.Parse(Path(batching).read_text(), batching_parameters())
    assert list(parameters.allowed_batch_sizes) == [2, 16]
    assert parameters.max_batch_size.value == 16
    assert parameters.batch_timeout_micros.value == 500
    assert parameters.num_batch_threads.value == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batching_parameters.txt", "models.config"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": 'a"b'}, "name must be letters"),
        ({"base_path": "models"}, "base_path must be an absolute path"),
        ({"base_path": '/a"b'}, "base_path must be an absolute path"),
        ({"versions": 0}, "versions must be an integer of at least 1"),
        ({"timeout_micros": -1}, "timeout_micros must be an integer of at least 0"),
        ({"threads": True}, "threads must be an integer of at least 1"),
        ({"batch_sizes": (8, 1)}, "batch_sizes must be rising integers"),
    ],
)
def test_arguments_are_checked(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_server_files(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none' cannot be written"):
        write_server_files(tmp_path / "none")
