# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of pip and uv, and what their answers mean."""

import json
from subprocess import CompletedProcess

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import Index, NoAnswer

OFFERED = {"3.9": ["2.8.0", "2.6.0"], "3.10": ["2.10.0", "2.8.0", "2.13.0+cpu"], "3.15": []}


@pytest.fixture
def pip(monkeypatch):
    """Answer as pip does, which fails for a Python without a release."""

    def run(index, *arguments, text=None):
        if arguments == ("pip", "--version"):
            return CompletedProcess(arguments, 0, "pip 26.3 from /usr/lib (python 3.11)\n", "")
        found = OFFERED[arguments[-1]]
        return CompletedProcess(
            arguments, not found, json.dumps({"versions": found}), "ERROR: no matching distribution"
        )

    monkeypatch.setattr(Index, "_run", run)


def test_stable_releases_with_their_oldest_python(pip):
    found = Index().releases("torch", ["3.9", "3.10", "3.15"])
    assert list(found.items()) == [("2.6.0", "3.9"), ("2.8.0", "3.9"), ("2.10.0", "3.10")]


def test_an_index_that_is_silent_is_no_index_without_releases(pip):
    with pytest.raises(NoAnswer, match="no matching distribution"):
        Index().releases("torch", ["3.15"])


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("25.0.1", r"pip on the controller is 25\.0\.1, and 25\.1 or newer is needed"),
        ("25.1", "RuntimeError: it crashed"),
    ],
)
def test_a_pip_without_json_is_no_silent_index_and_no_pip_that_crashed(monkeypatch, version, said):
    """Both end with status 2."""

    def run(index, *arguments, text=None):
        if arguments == ("pip", "--version"):
            return CompletedProcess(arguments, 0, f"pip {version} from /usr/lib (python 3.11)\n", "")
        return CompletedProcess(arguments, 2, "", "no such option: --json\nRuntimeError: it crashed\n")

    monkeypatch.setattr(Index, "_run", run)
    with pytest.raises(NoAnswer, match=said):
        Index().releases("torch", ["3.12"])


@pytest.mark.parametrize("url", ["http://index.example/simple", "ftp://index.example/simple"])
def test_an_index_without_tls_is_not_asked(url):
    with pytest.raises(NoAnswer, match=r"index\.example is not read over TLS"):
        Index(url).requirements("torch", "2.8.0", "3.12")


def test_wheels_that_are_not_served_over_tls_are_not_believed(monkeypatch):
    wheels = (
        '[[packages]]\nname = "torch"\nwheels = [{ url = "http://elsewhere.example/torch-2.8.0-py3-none-any.whl" }]'
    )
    monkeypatch.setattr(Index, "_run", lambda index, *arguments, text: CompletedProcess(arguments, 0, wheels, ""))
    with pytest.raises(NoAnswer, match=r"elsewhere\.example"):
        Index().lock("torch", "2.8.0", "3.12")


@pytest.mark.parametrize(
    "ask",
    [
        lambda index: index.releases("torch", ["3.12"]),
        lambda index: index.lock("torch", "2.8.0", "3.12"),
        lambda index: index.requirements("torch", "2.8.0", "3.12"),
    ],
    ids=["releases", "lock", "requirements"],
)
def test_no_password_stands_in_what_a_client_said_last(monkeypatch, ask):
    said = "error: https://site:secret@index.example/simple/torch/ timed out"
    monkeypatch.setattr(Index, "_run", lambda index, *arguments, text=None: CompletedProcess(arguments, 1, "", said))
    with pytest.raises(NoAnswer) as problem:
        ask(Index())
    assert str(problem.value) == "error: https://index.example/simple/torch/ timed out"
