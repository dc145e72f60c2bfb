# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it: four cases, a wrong checksum, an address that has nothing, and a real proxy."""

import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import download

COLLECTIONS = str(Path(download.__file__).resolve().parents[2] / ".collections")
CONTENT = b"a driver\n"
CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "source").write_bytes(CONTENT)
    (tmp_path / "target").mkdir()
    return tmp_path


def run(place, check=False, **options):
    said = {"url": f"file://{place}/source", "path": f"{place}/target/file", "checksum": CHECKSUM, **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.download",
         json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **said}})],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )  # fmt: skip
    return json.loads(done.stdout)


def left(place):
    return {path.name: path.read_bytes() for path in (place / "target").iterdir()}


def test_change(place):
    assert run(place, mode="0700")["changed"] is True
    assert left(place) == {"file": CONTENT}
    assert (place / "target" / "file").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("link", [False, True])
def test_what_was_left_of_an_execution_that_was_killed_does_not_stay(place, link):
    """Hundreds of megabytes, each time; and what is there is not written to, wherever it leads."""
    program = (
        "import os, signal\nfrom ansible_collections.allreduce.gpu.plugins.modules import download\n"
        "download.download.fetch = lambda *_given: os.kill(os.getpid(), signal.SIGKILL)\ndownload.main()\n"
    )
    said = {"url": "file:///nothing", "path": f"{place}/target/file", "checksum": CHECKSUM}
    given = [sys.executable, "-c", program, json.dumps({"ANSIBLE_MODULE_ARGS": said})]
    killed = subprocess.run(given, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": COLLECTIONS})
    assert killed.returncode == -signal.SIGKILL
    (name,) = left(place)
    if link:
        (place / "target" / name).unlink()
        (place / "target" / name).symlink_to(place / "other")
    assert run(place)["changed"] is True
    assert left(place) == {"file": CONTENT}
    assert not (place / "other").exists()


def test_change_in_check_mode(place):
    assert run(place, check=True)["changed"] is True
    assert left(place) == {}


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(place, check):
    run(place)
    (place / "source").unlink()
    assert run(place, check=check)["changed"] is False


def test_permissions_alone_are_a_change(place):
    run(place)
    assert run(place, mode="0600")["changed"] is True
    assert (place / "target" / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("checksum", ["", CHECKSUM.partition(":")[2], "sha256:", "sha256:abc", f"sha512:{'0' * 64}"])
@pytest.mark.parametrize("check", [False, True])
def test_a_checksum_that_is_none_is_refused_and_not_ignored(place, checksum, check):
    answer = run(place, check=check, checksum=checksum)
    assert answer["failed"] is True
    assert answer["msg"] == f"checksum is '{checksum}': set it to sha256: and the 64 digits of the file"
    assert left(place) == {}


def test_a_file_of_another_checksum_is_not_put_in_place(place):
    (place / "target" / "file").write_bytes(b"the one before")
    answer = run(place, checksum=f"sha256:{'0' * 64}")
    assert answer["failed"] and "did not match" in answer["msg"] and CHECKSUM in answer["msg"]
    assert left(place) == {"file": b"the one before"}


def test_what_something_else_verifies_is_fetched_every_time(place):
    run(place)
    (place / "source").write_bytes(b"newer")
    assert run(place, checksum=None)["changed"] is True
    assert left(place) == {"file": b"newer"}


@pytest.mark.parametrize("check", [False, True])
def test_an_address_that_has_nothing(place, check):
    (place / "source").unlink()
    answer = run(place, check=check)
    assert answer["failed"] and f"file://{place}/source cannot be fetched" in answer["msg"]
    assert "base_http_proxy" in answer["msg"]
    assert left(place) == {}


def test_through_the_proxy_of_the_node(place, monkeypatch):
    """The proxy gets the whole address, and user and password decoded."""
    asked = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Proxy-Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *_args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxies = {"http_proxy": f"http://user:p%40ss@127.0.0.1:{server.server_port}"}
    monkeypatch.setattr(
        os, "environ", {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    )
    try:
        found = download.download.fetch("http://unknown.invalid/file", f"{place}/target/file", proxies)
    finally:
        server.shutdown()
    assert (found, left(place)) == (None, {"file": CONTENT})
    assert asked == [("http://unknown.invalid/file", "Basic dXNlcjpwQHNz")]


def test_a_file_is_found_by_its_name(place):
    assert run(place, url="source", pages=["/nowhere", str(place)])["changed"] is True
    assert left(place) == {"file": CONTENT}


@pytest.mark.parametrize(("pages", "said"), [([], "no place is named"), (["/nowhere"], "/nowhere does not have it")])
def test_a_file_that_no_place_has(place, pages, said):
    answer = run(place, url="source", pages=pages)
    assert answer["failed"] and answer["msg"] == f"No source has source: {said}"
