# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a data set from its source: a directory that the node sees, or an address."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import http.client
import os
import shutil
import tempfile
from urllib.parse import quote

from ansible.module_utils.urls import open_url

from ..host import download
from .manifest import MOST

TIMEOUT = 60


def source_of(text):
    """Return the source that TEXT names."""
    return Directory(text) if text.startswith("/") else Address(text)


class Directory:
    """A directory, such as one of a file system that all nodes share."""

    def __init__(self, path):
        self.path = path

    def read(self, name):
        """Return (the bytes of a small file, why there are none)."""
        try:
            with open(os.path.join(self.path, name), "rb") as stream:
                return stream.read(MOST), None
        except EnvironmentError as error:
            return None, error.strerror

    def size(self, name):
        """Return the bytes of a file; None where there is none."""
        try:
            return os.stat(os.path.join(self.path, name)).st_size
        except EnvironmentError:
            return None

    def fetch(self, name, path):
        """Copy a file to PATH; return why not, None where it was."""
        try:
            shutil.copyfile(os.path.join(self.path, name), path)
        except EnvironmentError as error:
            return str(error)
        return None


class Address:
    """A web server's directory, through the proxies of the node."""

    def __init__(self, url):
        self.url, self.proxies = url.rstrip("/"), download.read_proxies()

    def read(self, name):
        """Return (the bytes of a small file, why there are none)."""
        with tempfile.NamedTemporaryFile() as kept:
            found = download.fetch(self._at(name), kept.name, self.proxies)
            return (None, found["detail"]) if found else (kept.read(MOST), None)

    def size(self, name):
        """Return the bytes of a file; None where the server does not have it, or does not tell."""
        os.environ.update(self.proxies)
        try:
            answer = open_url(self._at(name), method="HEAD", timeout=TIMEOUT)
            return int(answer.headers["Content-Length"])
        except (EnvironmentError, TypeError, ValueError, http.client.HTTPException):
            return None

    def fetch(self, name, path):
        """Fetch a file to PATH; return why not, None where it was."""
        found = download.fetch(self._at(name), path, self.proxies)
        return found["detail"] if found else None

    def _at(self, name):
        return "%s/%s" % (self.url, quote(name))
