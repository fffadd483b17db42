"""A run under CI=true must not pass because something was skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = {
    "skip": "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n",
    "xfail": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n",
    "module": "import pytest\npytest.importorskip('no_such_module')\ndef test_a(): pass\n",
}


@pytest.fixture
def run_pytest(tmp_path):
    """Run files under the hooks of `no_skips`; give back the exit status and what was printed."""
    shutil.copy(Path(__file__).with_name("no_skips.py"), tmp_path / "conftest.py")
    (tmp_path / "test_passes.py").write_text("def test_b(): pass\n")

    def run(ci: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
        environment = {**os.environ, "CI": ci}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("kind", SKIPS)
def test_a_skip_fails_the_run_under_ci(kind, run_pytest, tmp_path):
    (tmp_path / f"test_{kind}.py").write_text(SKIPS[kind])
    status, printed = run_pytest("true")
    assert status == 1
    assert f"ERROR unexpected skip or xfail: test_{kind}.py" in printed


def test_a_skip_is_only_a_skip_elsewhere(run_pytest, tmp_path):
    (tmp_path / "test_skip.py").write_text(SKIPS["skip"])
    assert run_pytest("")[0] == 0


def test_a_run_without_skips_passes_under_ci(run_pytest):
    assert run_pytest("true")[0] == 0
