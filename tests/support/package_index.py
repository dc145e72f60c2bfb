# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package index on this machine: the simple API as JSON (PEP 691) with metadata files (PEP 658), and no wheel behind them."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# What pip and uv are told, so that they ask no other place that a machine's files name.
OWN_CLIENTS = {"PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": "", "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1"}
JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class PackageIndex:
    """Packages by name: for each release the tags of its wheels and what they require. asked: the paths that were asked for."""

    packages: dict[str, dict[str, tuple[list[str], list[str]]]]
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, path):
        """Return what stands at a path: its type and text; None where nothing does."""
        self.asked.append(path)
        place, _slash, name = path.strip("/").partition("/")
        if place == "simple" and name in self.packages:
            return JSON, json.dumps(self._page(name))
        wheel, dot, _metadata = name.rpartition(".metadata")
        return ("text/plain", self._metadata(wheel)) if place == "files" and dot else None

    def _page(self, name):
        releases = self.packages[name]
        files = [
            self._file(f"{name}-{version}-{tag}.whl") for version, (tags, _told) in releases.items() for tag in tags
        ]
        return {"meta": {"api-version": "1.1"}, "name": name, "versions": list(releases), "files": files}

    def _file(self, wheel):
        told = {"sha256": hashlib.sha256(self._metadata(wheel).encode()).hexdigest()}
        return {
            "filename": wheel, "url": f"/files/{wheel}", "hashes": {"sha256": hashlib.sha256(wheel.encode()).hexdigest()},
            "size": 1, "upload-time": "2026-12-01T10:00:00Z", "core-metadata": told, "yanked": False,
        }  # fmt: skip

    def _metadata(self, wheel):
        name, version = wheel.split("-")[:2]
        requires = "".join(f"Requires-Dist: {one}\n" for one in self.packages[name][version][1])
        return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"


@contextmanager
def serving(packages):
    """Serve packages over HTTP as long as the block takes."""
    index = PackageIndex(packages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found = index.answer(self.path)
            kind, text = found or ("text/plain", "not found")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
