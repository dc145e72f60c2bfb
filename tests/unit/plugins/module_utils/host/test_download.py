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
