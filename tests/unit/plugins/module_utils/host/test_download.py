# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxies as role base writes them, and what is said of a fetch that fails."""

import errno
import io
import ssl
import urllib.error

import pytest
from ansible.module_utils.urls import SSLValidationError
from ansible_collections.allreduce.gpu.plugins.module_utils.host import download

WRITTEN = """\
# Written by role allreduce.gpu.base; changes made here are lost.
export http_proxy='http://user:p%40ss word@proxy.example.org:3128'
export HTTP_PROXY='http://user:p%40ss word@proxy.example.org:3128'
export no_proxy=localhost,10.0.0.0/8
"""


def test_proxies_are_read_from_the_file_of_role_base(tmp_path):
    (tmp_path / "proxy.sh").write_text(WRITTEN, encoding="utf-8")
    address = "http://user:p%40ss word@proxy.example.org:3128"
    expected = {"http_proxy": address, "HTTP_PROXY": address, "no_proxy": "localhost,10.0.0.0/8"}
    assert download.read_proxies(str(tmp_path / "proxy.sh")) == expected
    assert download.read_proxies(str(tmp_path / "missing.sh")) == {}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (urllib.error.HTTPError("http://x/", 404, "Not Found", {}, io.BytesIO()), "answers"),
        (urllib.error.HTTPError("http://x/", 407, "Proxy Authentication Required", {}, io.BytesIO()), "proxy_refused"),
        (
            urllib.error.URLError(OSError("Tunnel connection failed: 407 Proxy Authentication Required")),
            "proxy_refused",
        ),
        (SSLValidationError("self-signed"), "certificate"),
        (urllib.error.URLError(ssl.SSLError("self-signed")), "certificate"),
        (urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")), "unreachable"),
        (SSLValidationError("Failed to validate the SSL certificate for gpu407.example.org:443"), "certificate"),
        (urllib.error.URLError(OSError("Tunnel connection failed: 403 gpu407 is not allowed")), "unreachable"),
        (urllib.error.URLError(OSError(113, "No route to host 10.0.0.407")), "unreachable"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk"),
        (ValueError("unknown url type: 'x'"), "unreachable"),
    ],
)
def test_a_failure_has_a_code(monkeypatch, tmp_path, error, code):
    def fail(*_args, **_more):
        raise error

    monkeypatch.setattr(download, "open_url", fail)
    problem = download.fetch("http://x/", str(tmp_path / "file"), {})
    assert (problem["code"], problem["detail"]) == (code, str(error))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host/file", "https://host/file"),
        ("https://user:p@ss@host/file", "https://host/file"),
        ("https://host/a@b", "https://host/a@b"),
        ("https://host?mail=a@b", "https://host?mail=a@b"),
        ("file:///root/file", "file:///root/file"),
    ],
)
def test_an_address_is_shown_without_its_password(url, shown):
    assert download.without_password(url) == shown


PAGE = """<html><a href="../../packages/ab/tool-1.0.tar.gz#sha256=00" data-x="1">tool-1.0.tar.gz</a>
<A class='x' HREF='tool-1.1%2Blocal.tar.gz'>x</A><a href="https://files.example.org/tool-2.0.tar.gz?a=1&amp;b=2">y</a></html>"""


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("tool-1.0.tar.gz", "http://user:word@x/packages/ab/tool-1.0.tar.gz"),
        ("tool-1.1+local.tar.gz", "http://user:word@x/simple/tool/tool-1.1%2Blocal.tar.gz"),
        ("tool-2.0.tar.gz", "https://files.example.org/tool-2.0.tar.gz?a=1&b=2"),
        ("tool-3.0.tar.gz", None),
        ("ool-1.0.tar.gz", None),
    ],
)
def test_a_page_links_to_a_file(name, address):
    assert download.link_to(name, PAGE, "http://user:word@x/simple/tool/") == address


def test_a_file_is_looked_for_in_order(tmp_path, monkeypatch):
    class Answer(io.BytesIO):
        def geturl(self):
            return "http://x/simple/tool/"

    monkeypatch.setattr(download, "open_url", lambda url, timeout: Answer(PAGE.encode()))
    places = [str(tmp_path), "http://user:word@x/simple/tool/"]
    absent = f"{tmp_path} does not have it"
    assert download.find("tool-1.0.tar.gz", places, {}) == ("http://user:word@x/packages/ab/tool-1.0.tar.gz", [absent])
    assert download.find("none.tar.gz", places, {}) == (None, [absent, "http://x/simple/tool/ does not link to it"])
    (tmp_path / "tool-1.0.tar.gz").touch()
    assert download.find("tool-1.0.tar.gz", places, {}) == (f"file://{tmp_path}/tool-1.0.tar.gz", [])


def test_a_page_that_cannot_be_read_is_named_without_its_password(monkeypatch):
    def fail(*_args, **_more):
        raise urllib.error.URLError("no route to http://user:word@x/")

    monkeypatch.setattr(download, "open_url", fail)
    address, (problem,) = download.find("tool", ["http://user:word@x/"], {})
    assert address is None and problem.startswith("http://x/ cannot be read (") and "word" not in problem
