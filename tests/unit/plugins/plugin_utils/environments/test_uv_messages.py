# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded output of uv 0.13 and pip 23, and the sentence a user gets for it."""

import json
import random
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.uv_messages import (
    CAUSES,
    explain,
    without_credentials,
)

LINKS = ["http://10.0.0.1:8000/"]
HINT = "set python_env_index_url, python_env_find_links or gpu_stack_request."
MIRROR = "check the network and base_http_proxy, or set python_env_python_mirror."
LIST = "check the network and base_http_proxy, or repair what python_env_python_downloads names."
NETWORK = f"check the network, set base_http_proxy if it needs a proxy, or {HINT}"
RECORDED = {
    "wheel not found": (
        "no_solution",
        "error: No solution found when resolving dependencies\n"
        "  cause: Because there is no version of torch==2.99.0 and main depends on torch==2.99.0, we can conclude that "
        "your requirements are unsatisfiable.\n",
        "X: no wheels fit (there is no version of torch==2.99.0 and main depends on torch==2.99.0); "
        f"looked in http://10.0.0.1:8000/; {HINT}",
    ),
    "no interpreter": (
        "no_interpreter",
        "error: No interpreter found for Python 3.14 in search path\n\n"
        "hint: A managed Python download is available for Python 3.14, but Python downloads are set to 'never'\n",
        "X: this host has no Python 3.14; install it from the distribution, or set gpu_stack_request.python to a version that it has.",
    ),
    "disk full while installing": (
        "disk_full",
        "Resolved 11 packages in 0.89ms\n"
        "error: Failed to install: numpy-2.4.6.whl (numpy==2.4.6)\n  cause: Failed to copy to `/opt/x.so`\n"
        "  cause: failed to copy file from /a to /b: No space left on device (os error 28)\n",
        "X: the file system of /opt/allreduce or of the temporary directory is full; free some space and run again.",
    ),
    "hash mismatch": (
        "hash_mismatch",
        "error: Failed to download `numpy==2.4.6`\n  cause: Hash mismatch for `numpy==2.4.6`\n\n         Expected:\n"
        "           sha256:99\n\n         Computed:\n           sha256:89\n",
        "X: the file found for numpy==2.4.6 is not the one that was locked; repair the source (http://10.0.0.1:8000/), "
        "or solve again with frameworks_relock=true.",
    ),
    "wheel directory down": (
        "unreachable",
        "error: Failed to read `--find-links` URL: http://10.0.0.1:8000/\n  cause: Request failed after 3 retries in 9.6s\n"
        "  cause: Failed to fetch: http://10.0.0.1:8000/\n  cause: tcp connect error\n"
        "  cause: Connection refused (os error 111)\n",
        "X: http://10.0.0.1:8000/ cannot be fetched (Connection refused (os error 111)); " + NETWORK,
    ),
    "unknown host": (
        "unreachable",
        "error: Failed to fetch: https://mia:secret@no-such-host.example/simple/numpy/\n  cause: dns error\n"
        "  cause: failed to lookup address information: Name or service not known\n",
        "X: https://no-such-host.example/simple/numpy/ cannot be fetched (failed to lookup address information: "
        "Name or service not known); " + NETWORK,
    ),
    "untrusted certificate": (
        "untrusted_certificate",
        "error: Failed to fetch: `https://index.example/simple/numpy/`\n"
        "  cause: invalid peer certificate: UnknownIssuer\n",
        "X: the certificate of http://10.0.0.1:8000/ is not trusted; add its authority with base_ca_certificates.",
    ),
    "proxy without a password": (
        "proxy_refused",
        "error: Failed to read `--find-links` URL: https://wheels.example/\n  cause: Request failed after 3 retries in 6.6s\n"
        "  cause: Failed to fetch: https://wheels.example/\n  cause: client error (Connect)\n"
        "  cause: tunnel error: proxy authorization required\n",
        "X: the proxy requires a user name and password; write them into the addresses base_http_proxy and base_https_proxy.",
    ),
    "pip, proxy without a password": (
        "proxy_refused",
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'ProxyError('Cannot connect to proxy.', "
        "OSError('Tunnel connection failed: 407 Proxy Authentication Required'))': /\n"
        "ERROR: No matching distribution found for numpy\n",
        "X: the proxy requires a user name and password; write them into the addresses base_http_proxy and base_https_proxy.",
    ),
    "pip, untrusted certificate": (
        "untrusted_certificate",
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'SSLError(SSLCertVerificationError(1, "
        "'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in certificate chain'))': /\n"
        "ERROR: No matching distribution found for numpy\n",
        "X: the certificate of http://10.0.0.1:8000/ is not trusted; add its authority with base_ca_certificates.",
    ),
    "pip, no network": (
        "unreachable",
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3."
        "connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 101] Network is unreachable')'\n"
        "ERROR: No matching distribution found for numpy\n",
        "X: http://10.0.0.1:8000/ cannot be reached; " + NETWORK,
    ),
    "pip finds nothing": (
        "package_not_found",
        "ERROR: Could not find a version that satisfies the requirement uv==0.13.9 (from versions: none)\n"
        "ERROR: No matching distribution found for uv==0.13.9\n",
        f"X: no wheel found for uv==0.13.9; looked in http://10.0.0.1:8000/; {HINT}",
    ),
    "pip rejects a hash": (
        "hash_mismatch",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    uv==0.13.9:\n",
        "X: a file found in http://10.0.0.1:8000/ does not have the expected SHA-256; repair that source.",
    ),
    "read-only": (
        "read_only",
        "error: failed to create directory `/opt/allreduce/envs/main`: Read-only file system (os error 30)\n",
        "X: /opt/allreduce lies on a read-only file system; mount it writable and run again.",
    ),
    "no venv": (
        "no_venv",
        "The virtual environment was not created successfully because ensurepip is not available.\n",
        "X: the Python that creates uv's environment lacks its modules venv and ensurepip; install the distribution's "
        "package that has them, such as python3-venv on Debian, and run again.",
    ),
    "no interpreter at a path": (
        "no_interpreter",
        "error: No interpreter found at path `/usr/bin/python3.8`\n",
        "X: this host has no /usr/bin/python3.8; repair the package it comes from, or set python_env_python.",
    ),
    "an interpreter with another checksum": (
        "interpreter_mismatch",
        "Downloading cpython-3.10.13-linux-x86_64-gnu (download) (18.7MiB)\n"
        " Downloaded cpython-3.10.13-linux-x86_64-gnu (download)\n"
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n"
        "  cause: Hash mismatch for `cpython-3.10.13-linux-x86_64-gnu`\n\n         Expected:\n         0000\n\n"
        "         Computed:\n         76bf\n",
        "X: the download of cpython-3.10.13-linux-x86_64-gnu does not have the checksum of the list; repair the source "
        "(http://10.0.0.1:8000/).",
    ),
    "an interpreter that the mirror lacks": (
        "interpreter_unreachable",
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n"
        "  cause: Failed to download `http://mia:secret@10.0.0.1:8000/20240224/cpython.tar.gz`\n"
        "  cause: HTTP status client error (404 File not found) for url (http://mia:secret@10.0.0.1:8000/20240224/cpython.tar.gz)\n",
        "X: http://10.0.0.1:8000/20240224/cpython.tar.gz cannot be downloaded (HTTP status client error (404 File not found)); "
        + MIRROR,
    ),
    "a mirror of interpreters that does not answer": (
        "interpreter_unreachable",
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n  cause: Request failed after 3 retries in 5.5s\n"
        "  cause: Failed to download `http://10.0.0.1:1/cpython.tar.gz`\n"
        "  cause: error sending request for url (http://10.0.0.1:1/cpython.tar.gz)\n  cause: client error (Connect)\n"
        "  cause: tcp connect error\n  cause: Connection refused (os error 111)\n",
        f"X: http://10.0.0.1:1/cpython.tar.gz cannot be downloaded (Connection refused (os error 111)); {MIRROR}",
    ),
    "a mirror in a directory that lacks the file": (
        "interpreter_unreachable",
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n  cause: failed to query metadata of file "
        "`/srv/python/20240224/cpython.tar.gz`: No such file or directory (os error 2)\n",
        "X: /srv/python/20240224/cpython.tar.gz cannot be downloaded (failed to query metadata of file "
        f"`/srv/python/20240224/cpython.tar.gz`: No such file or directory (os error 2)); {MIRROR}",
    ),
    "an interpreter that is cut off": (
        "interpreter_unreachable",
        "Downloading cpython-3.10.13-linux-x86_64-gnu (download) (18.7MiB)\n"
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n  cause: Request failed after 3 retries in 11.6s\n"
        "  cause: Failed to extract archive: cpython.tar.gz\n  cause: Invalid tar file\n"
        "  cause: end of file before message length reached\n",
        "X: cpython-3.10.13-linux-x86_64-gnu cannot be downloaded from http://10.0.0.1:8000/ (end of file before message "
        f"length reached); {MIRROR}",
    ),
    "a mirror whose certificate is unknown": (
        "untrusted_certificate",
        "error: Failed to install cpython-3.10.13-linux-x86_64-gnu\n"
        "  cause: Failed to download `https://10.0.0.1:8766/cpython.tar.gz`\n"
        "  cause: error sending request for url (https://10.0.0.1:8766/cpython.tar.gz)\n"
        "  cause: client error (Connect)\n  cause: invalid peer certificate: UnknownIssuer\n",
        "X: the certificate of http://10.0.0.1:8000/ is not trusted; add its authority with base_ca_certificates.",
    ),
    "a Python that the list does not have": (
        "interpreter_not_listed",
        "error: No download found for request: cpython-3.6-linux-x86_64-gnu\n",
        "X: the list of downloads has no cpython-3.6-linux-x86_64-gnu; set gpu_stack_request.python to a version that it has, or name "
        "another list with python_env_python_downloads.",
    ),
    "a list that is not there": (
        "interpreter_list",
        "error: Error while fetching remote python downloads json from `http://10.0.0.1:8000/x.json`\n"
        "  cause: Failed to fetch: http://10.0.0.1:8000/x.json\n"
        "  cause: HTTP status client error (404 File not found) for url (http://10.0.0.1:8000/x.json)\n",
        "X: the list of downloads http://10.0.0.1:8000/x.json cannot be read (HTTP status client error (404 File not "
        f"found)); {LIST}",
    ),
    "a list that is none": (
        "interpreter_list",
        "error: Unable to parse the JSON Python download list at `http://10.0.0.1:8000/x.json`\n"
        "  cause: expected value at line 1 column 1\n",
        "X: the list of downloads http://10.0.0.1:8000/x.json cannot be read (expected value at line 1 column 1); "
        + LIST,
    ),
    "a list in a file that is not there": (
        "interpreter_list",
        "error: failed to open file `/srv/x.json`: No such file or directory (os error 2)\n",
        "X: the list of downloads /srv/x.json cannot be read (failed to open file `/srv/x.json`: No such file or directory "
        f"(os error 2)); {LIST}",
    ),
    "anything else": ("unknown", "warning: x\nerror: something new went wrong\n", "X: something new went wrong."),
    "nothing": ("unknown", "", "X: no output."),
}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_cause_and_sentence_of_a_recorded_failure(name):
    cause, output, sentence = RECORDED[name]
    found = explain(output, "X", find_links=LINKS, no_index=True)
    assert (found["cause"], found["text"]) == (cause, sentence)
    assert bool(found["remedy"]) == (cause != "unknown")
    assert sentence.endswith(f"; {found['remedy']}.") or cause == "unknown"


def test_every_cause_is_seen_here():
    assert {cause for cause, _output, _sentence in RECORDED.values()} == {one.code for one in CAUSES} | {"unknown"}


def test_all_places_that_were_looked_at_are_named():
    text = explain("No matching distribution found for a", "X", find_links=["/w"], wheel_index="https://cpu.example")
    assert "looked in /w, https://cpu.example, the default package index;" in text["text"]


def test_credentials_are_left_out():
    assert without_credentials("see https://user:pass@host/x and http://token@h") == "see https://host/x and http://h"
    found = explain("No matching distribution found for a", "X", index_url="https://u:secret@i.example")
    assert "secret" not in str(found)


BUILD = "cpython-3.10.13-linux-x86_64-gnu"
# What the list says, the version that is asked for, the mirror, and the cause that this uv's own words are recognized as.
REAL = {
    "another checksum": ({"sha256": "0" * 64}, "3.10", {}, "interpreter_mismatch"),
    "not on the mirror": ({}, "3.10", {"UV_PYTHON_INSTALL_MIRROR": "file:///nowhere"}, "interpreter_unreachable"),
    "no archive": ({"url": "file:///nowhere/20240224/cpython.tar.gz"}, "3.10", {}, "interpreter_unreachable"),
    "broken off": ({"url": "{truncated}", "sha256": None}, "3.10", {}, "interpreter_unreachable"),
    "not in the list": ({}, "3.6", {}, "interpreter_not_listed"),
    "no list": ({}, "3.10", {"UV_PYTHON_DOWNLOADS_JSON_URL": "/nowhere/list.json"}, "interpreter_list"),
    "a list that is none": ({}, "3.10", {"UV_PYTHON_DOWNLOADS_JSON_URL": __file__}, "interpreter_list"),
}


def archive(place):
    """Write an archive in the layout of a standalone build; return the addresses of it and of its first half."""
    (place / "python" / "bin").mkdir(parents=True)
    (place / "python" / "bin" / "python3.10").write_bytes(random.Random(1).randbytes(4000))
    with tarfile.open(place / "cpython.tar.gz", "w:gz") as tar:
        tar.add(place / "python", "python")
    (place / "half.tar.gz").write_bytes((place / "cpython.tar.gz").read_bytes()[:2000])
    return f"file://{place}/cpython.tar.gz", f"file://{place}/half.tar.gz"


@pytest.mark.parametrize("name", REAL)
def test_what_the_pinned_uv_says_of_an_interpreter_is_recognized(name, tmp_path):
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists():
        pytest.skip("uv is not installed beside this Python")
    changes, version, variables, cause = REAL[name]
    whole, half = archive(tmp_path)
    entry = {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux", "libc": "gnu", "major": 3, "minor": 10,
        "patch": 13, "prerelease": "", "variant": None, "build": "20240224", "sha256": "1" * 64, "url": whole, **changes,
    }  # fmt: skip
    if "UV_PYTHON_INSTALL_MIRROR" in variables:
        entry["url"] = "https://github.com/astral-sh/python-build-standalone/releases/download/20240224/cpython.tar.gz"
    entry["url"] = entry["url"].replace("{truncated}", half)
    (tmp_path / "list.json").write_text(json.dumps({BUILD: entry}))
    environment = {
        "UV_NO_CONFIG": "1", "UV_NO_PROGRESS": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON_DOWNLOADS": "manual",
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "installed"), "UV_PYTHON_DOWNLOADS_JSON_URL": str(tmp_path / "list.json"),
        **variables,
    }  # fmt: skip
    command = [uv, "python", "install", "--no-bin", "--reinstall", f"cpython-{version}-linux-x86_64-gnu"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode != 0
    assert explain(process.stderr, "X")["cause"] == cause, process.stderr
