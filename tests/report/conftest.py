# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium that looks at reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html
from ansible_collections.allreduce.gpu.tests.report import cluster, simulated
from ansible_collections.allreduce.gpu.tests.report.page import Page

from tests.support.benchmark import whole


def _program(*names: str) -> str:
    """Fails where there is none: a report nobody has looked at must not pass."""
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        pytest.fail(f"no {names[0]} on this machine: install it with 'apt-get install chromium chromium-driver'")
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator:
    """One browser for all tests; it starts without a window, a network service or a profile."""
    chromium, driver = _program("chromium", "chromium-browser", "google-chrome"), _program("chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        pytest.fail("the Python package selenium is missing: install requirements-dev.txt")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    quiet = [
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "disable-quic",
    ]
    # No sandbox, no shared memory: both fail in containers, and the only page shown is our own.
    for argument in ["headless", "disable-gpu", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars", *quiet]:
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={profile}")
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def report_file(tmp_path_factory) -> Path:
    """A report with a failed check, an unknown one, runs on one and two nodes, and a failed run with hostile text."""
    report = cluster.build_report(cluster.verification(), cluster.results(), title="Acceptance of cluster A")
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def large_report_file(tmp_path_factory) -> Path:
    """The same for a thousand nodes."""
    report = cluster.build_report(cluster.many_nodes(1000), cluster.results(), title="Acceptance of a large cluster")
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def crowded_report_file(tmp_path_factory) -> Path:
    """The same with words that fit no screen."""
    verification, results = cluster.long_words(cluster.verification()), cluster.long_words(cluster.results())
    path = tmp_path_factory.mktemp("crowded") / "report.html"
    path.write_text(html.render(cluster.build_report(verification, results, title="m" * 150)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def machines_file(tmp_path_factory) -> Path:
    """Simulated machines: three equal ones behind NVSwitches, one of the same kind that is broken, and others."""
    names = {f"dgx-{number}": "dgx" for number in (1, 2, 3)}
    names |= {"broken-1": "broken", "a40-1": "a40", "desk-1": "workstation", "cube-1": "cube"}
    path = tmp_path_factory.mktemp("machines") / "report.html"
    path.write_text(
        html.render(cluster.build_report(simulated.verification(**names), [], title="Machines")), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="session")
def benchmark_file(tmp_path_factory) -> Path:
    """A report with a benchmark, whose words fit no screen."""
    report = cluster.build_report(cluster.verification(), [], "Benchmark", cluster.long_words(whole()))
    path = tmp_path_factory.mktemp("benchmark") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def courses_file(tmp_path_factory) -> Path:
    """A report of a run whose GPUs were watched."""
    report = cluster.build_report(cluster.verification(), cluster.results(), "Courses", watched=cluster.watched)
    path = tmp_path_factory.mktemp("courses") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    return path


@pytest.fixture
def courses_phone(browser, courses_file) -> Iterator[Page]:
    """What the GPUs did in the course of a run, on a small phone."""
    yield from _shown(Page(browser, 375, 812), courses_file)


@pytest.fixture
def courses_desktop(browser, courses_file) -> Iterator[Page]:
    """The same on a desktop."""
    yield from _shown(Page(browser, 1280, 900), courses_file)


@pytest.fixture
def benchmark_phone(browser, benchmark_file) -> Iterator[Page]:
    """The benchmark on a small phone."""
    yield from _shown(Page(browser, 375, 812), benchmark_file)


@pytest.fixture
def benchmark_desktop(browser, benchmark_file) -> Iterator[Page]:
    """The benchmark on a desktop."""
    yield from _shown(Page(browser, 1280, 900), benchmark_file)


@pytest.fixture
def machines_phone(browser, machines_file) -> Iterator[Page]:
    """The machines on a small phone."""
    yield from _shown(Page(browser, 375, 812), machines_file)


@pytest.fixture
def machines_desktop(browser, machines_file) -> Iterator[Page]:
    """The machines on a desktop."""
    yield from _shown(Page(browser, 1280, 900), machines_file)


@pytest.fixture
def crowded_phone(browser, crowded_report_file) -> Iterator[Page]:
    """The crowded report on a phone."""
    yield from _shown(Page(browser, 390, 844), crowded_report_file)


@pytest.fixture
def crowded_desktop(browser, crowded_report_file) -> Iterator[Page]:
    """The crowded report on a desktop."""
    yield from _shown(Page(browser, 1280, 900), crowded_report_file)


@pytest.fixture
def phone(browser, report_file) -> Iterator[Page]:
    """The report on a phone."""
    yield from _shown(Page(browser, 390, 844), report_file)


@pytest.fixture
def desktop(browser, report_file) -> Iterator[Page]:
    """The report on a desktop."""
    yield from _shown(Page(browser, 1280, 900), report_file)


@pytest.fixture
def large(browser, large_report_file) -> Iterator[Page]:
    """The large report on a phone."""
    yield from _shown(Page(browser, 390, 844), large_report_file)


def _shown(page: Page, path: Path) -> Iterator[Page]:
    page.show(path)
    yield page
    page.reset()
