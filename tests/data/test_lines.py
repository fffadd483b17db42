"""The rule of lines, plain and gzipped."""

import gzip
import io

import pytest

from keras_seq2seq.data import read_lines
from keras_seq2seq.data.lines import count_lines

TEXT = "one\ntwo lone\rCR\nü\u0085x\u2028y\x0bz\0w\n\n five \n"
LINES = ["one", "two lone\rCR", "ü\u0085x\u2028y\x0bz\0w", "", " five "]


def gz(content: bytes) -> bytes:
    return gzip.compress(content)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (TEXT.encode(), LINES),
        (TEXT.encode()[:-1], LINES),  # no LF at the end
        (b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), LINES),  # BOM, CR LF
        (b"a\r\r\nb\r", ["a\r", "b\r"]),
        (b"ab\xffc\nd\xed\xa0\x80\n", ["ab\ufffdc", "d\ufffd\ufffd\ufffd"]),
        ("a\n\ufeffb\n".encode(), ["a", "\ufeffb"]),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"", []),
        (b"x" * 100_000 + b"\ny", ["x" * 100_000, "y"]),
    ],
)
def test_lines_end_at_lf_alone(tmp_path, content, lines):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    zipped = tmp_path / "a.txt.gz"
    zipped.write_bytes(gz(content))
    for name in (path, str(path), zipped):
        assert list(read_lines(name)) == lines
        assert count_lines(name) == len(lines)
    assert list(read_lines(io.BytesIO(content))) == lines


def test_all_members_of_a_gzip_file_are_read(tmp_path):
    path = tmp_path / "ab.gz"
    path.write_bytes(gz(b"1\n2\n") + gz(b"3") + gz(b"3\n4\n"))
    assert list(read_lines(path)) == ["1", "2", "33", "4"]
    assert count_lines(path) == 4


def test_lines_are_streamed(tmp_path):
    path = tmp_path / "late.gz"
    path.write_bytes(gz(b"fine\n" * 100_000) + b"no gzip")
    lines = read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(ValueError, match="damaged"):
        list(lines)


def test_damaged_and_misnamed_files_are_refused(tmp_path):
    whole = gz(b"some text\n" * 100)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 255
    for name, content, message in (
        ("plain.gz", b"plain text\n", r"plain.gz' ends in .gz but is no gzip file"),
        ("empty.gz", b"", r"empty.gz' ends in .gz but is no gzip file"),
        ("zipped.txt", whole, r"zipped.txt' is a gzip file without .gz"),
        ("short.gz", whole[:-9], r"short.gz' is a damaged gzip file"),
        ("broken.gz", bytes(broken), r"broken.gz' is a damaged gzip file"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        for read in (lambda path: list(read_lines(path)), count_lines):
            with pytest.raises(ValueError, match=message) as caught:
                read(path)
            assert "\n" not in str(caught.value)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nope.txt' does not exist"):
        count_lines(tmp_path / "nope.txt")
    with pytest.raises(IsADirectoryError, match="is a directory, expected a text file"):
        count_lines(tmp_path)
