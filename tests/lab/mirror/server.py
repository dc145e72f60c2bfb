# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve the lab's files over HTTP, count them, and misbehave where told to: runs with the standard library alone.

With --faults it is the mirror; without, a plain directory with listings (the wheels).

/VIEW/PATH shows PATH. A view is any word (a lab's name): FAULTS/VIEW.json holds what goes wrong for who uses that view,
[{"fault": NAME, "match": PATTERN, ...}], and is read again for every request. The first rule that matches a path counts.

--log FILE gets a line for every file that went out, TIME|O|BYTES|CLIENT|PATH, as apt-cacher-ng writes them.
"""

import argparse
import fnmatch
import functools
import http.server
import json
import posixpath
import time
import urllib.parse
from pathlib import Path

INDEX = "*Release* *Packages* *repodata/*"
PACKAGES = "*.deb *.rpm"
# Name: (paths it is about unless a rule says otherwise, what it does)
FAULTS = {
    "unavailable": ("*", "503 for everything"),
    "missing": ("*", "404 for everything"),
    "vanished": (PACKAGES, "the index names packages that are gone"),
    "truncated": ("*/Packages* *primary.xml*", "a file ends in the middle"),
    "broken-connection": ("*/Packages* *primary.xml* *.deb *.rpm", "the connection ends in the middle of a file"),
    "wrong-signature": ("*/InRelease */Release *repomd.xml", "the index was changed after it was signed"),
    "unknown-key": (INDEX, "the index is signed with another key"),
    "expired": (INDEX, "the index was valid until a month ago"),
    "lagging": (INDEX, "the newest fabric managers have not arrived"),
    "sha1-key": ("*.pub *repomd.xml.key", "the key as it was, bound by SHA-1"),
    "slow": ("*", "32 KiB per second; `rate` says otherwise"),
}
VARIANTS = ("unknown-key", "expired", "lagging", "sha1-key")


def matches(rule, path):
    """Return True if a rule is about a path."""
    patterns = rule.get("match") or FAULTS[rule["fault"]][0]
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns.split())


def variant_of(root, path, name):
    """Return the file to show instead: .lab/NAME of the directory that has one, else the file itself."""
    parts = path.strip("/").split("/")
    for depth in range(len(parts) - 1, 0, -1):
        candidate = root.joinpath(*parts[:depth], ".lab", name, *parts[depth:])
        if candidate.is_file():
            return candidate
    return root / path.strip("/")


class Counted:
    """Writes what was served to a file, where there is one."""

    log = None

    def note(self, size, path):
        if self.log:
            with open(self.log, "a") as out:
                out.write(f"{time.time():.0f}|O|{size}|{self.client_address[0]}|{path.strip('/')}\n")


class Directory(Counted, http.server.SimpleHTTPRequestHandler):
    """Answers with the files of a directory, and with listings."""

    def copyfile(self, source, outputfile):
        sent = 0
        try:
            while block := source.read(1 << 16):
                sent += outputfile.write(block)
        finally:  # also what went out before the client had enough
            self.note(sent, urllib.parse.unquote(self.path))


class Handler(Counted, http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"
    root = faults = None

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = posixpath.normpath(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path))
        view, dummy, rest = path.strip("/").partition("/")
        rule = next((rule for rule in self._rules(view) if matches(rule, rest)), {})
        fault = rule.get("fault")
        if fault in ("unavailable", "missing", "vanished"):
            return self._status(503 if fault == "unavailable" else 404)
        file = variant_of(self.root, rest, fault) if fault in VARIANTS else self.root / rest
        if ".lab" in rest.split("/") or not file.is_file():
            return self._status(404)
        return self._send(file.read_bytes(), fault, rule)

    def _rules(self, view):
        try:
            return json.loads((self.faults / (view + ".json")).read_text())
        except (OSError, ValueError):
            return []

    def _status(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, content, fault, rule):
        if fault == "wrong-signature":
            content = content.replace(b"NVIDIA CUDA", b"NVIDIA CUDa").replace(b"<revision>", b"<revision>1")
        if fault == "truncated":
            content = content[: len(content) // 2]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "broken-connection":
            content = content[: len(content) // 2]
            self.close_connection = True
        self.note(len(content), urllib.parse.unquote(self.path))
        if fault == "slow":
            self._trickle(content, rule.get("rate", 32768))
        else:
            self.wfile.write(content)

    def _trickle(self, content, rate):
        for start in range(0, len(content), rate):
            self.wfile.write(content[start : start + rate])
            self.wfile.flush()
            time.sleep(1)


def serve(root, faults, port, address="", log=None):
    """Return an HTTP server that is not started yet."""
    if faults:
        handler = type("MirrorHandler", (Handler,), {"root": Path(root), "faults": Path(faults), "log": log})
    else:
        handler = functools.partial(type("DirectoryHandler", (Directory,), {"log": log}), directory=str(root))
    return http.server.ThreadingHTTPServer((address, port), handler)


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--faults")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log")
    args = parser.parse_args()
    serve(args.root, args.faults, args.port, log=args.log).serve_forever()


if __name__ == "__main__":
    main()
