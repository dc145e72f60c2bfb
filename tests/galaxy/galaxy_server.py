# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of one collection that answers ansible-galaxy as Galaxy's API v3 does (github.com/ansible/galaxy_ng)."""

import hashlib
import http.server
import json
import threading
from contextlib import contextmanager
from pathlib import Path

COLLECTION = "/api/v3/collections/allreduce/gpu/"


@contextmanager
def serving(archive: Path, signature: Path):
    """Yield the address of a server that has this archive and its signature."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(archive, signature)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/"
        server.shutdown()


def handler(archive, signature):
    """Return a class that answers from these files."""
    content = archive.read_bytes()
    version = archive.name.removeprefix("allreduce-gpu-").removesuffix(".tar.gz")
    listed = {"version": version, "href": f"{COLLECTION}versions/{version}/"}
    answers = {
        "/api/": {"available_versions": {"v3": "v3/"}},
        COLLECTION: {"name": "gpu", "highest_version": listed},
        f"{COLLECTION}versions/": {"meta": {"count": 1}, "links": {"next": None}, "data": [listed]},
        f"{COLLECTION}versions/{version}/": {
            **listed,
            "namespace": {"name": "allreduce"},
            "collection": {"name": "gpu"},
            "artifact": {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)},
            "metadata": {"dependencies": {}},
            "signatures": [{"signature": signature.read_text(encoding="ascii")}],
        },
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            if path == f"/{archive.name}":
                return self.answer(content)
            if path not in answers:
                return self.send_error(404)
            address = f"http://{self.headers['Host']}/{archive.name}"
            return self.answer(json.dumps({**answers[path], "download_url": address}).encode())

        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments):
            pass

    return Handler
