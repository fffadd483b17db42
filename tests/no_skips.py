"""Two hooks for conftest.py: under CI=true a run that skips something must not pass."""

import os

import pytest

# Every skip and every expected failure that is right stands here: test id -> why.
ALLOWED_SKIPS: dict[str, str] = {}


def unexpected_skips(stats: dict[str, list[pytest.TestReport]]) -> list[str]:
    """List the ids of skipped and expectedly failing tests that are not allowed."""
    reports = [report for kind in ("skipped", "xfailed", "xpassed") for report in stats.get(kind, [])]
    return sorted({report.nodeid for report in reports} - ALLOWED_SKIPS.keys())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run under CI=true that passed only because something was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and exitstatus == 0 and reporter and unexpected_skips(reporter.stats):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the skips that fail the run."""
    if os.environ.get("CI") == "true":
        for nodeid in unexpected_skips(terminalreporter.stats):
            terminalreporter.write_line(f"ERROR unexpected skip or xfail: {nodeid}", red=True)
