# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large file from an address to the node: the proxies of the node, and the checksum."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import hashlib
import http.client
import os
import re
import shlex
import ssl
from html import unescape
from urllib.parse import quote, unquote, urljoin, urlsplit

from ansible.module_utils.urls import ConnectionError as RefusedError
from ansible.module_utils.urls import ProxyError, SSLValidationError, open_url

PROXIES = "/etc/profile.d/allreduce-proxy.sh"  # of role base
CHUNK = 1 << 20
TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: 407\b")  # http.client says it in words only
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def read_proxies(path=PROXIES):
    """Return {name: value} of what role base wrote for login shells; {} where no proxy is set."""
    try:
        with open(path) as stream:
            words = [shlex.split(line) for line in stream]
    except EnvironmentError:
        return {}
    found = [line[1].partition("=") for line in words if len(line) == 2 and line[0] == "export"]
    return {name: value for name, dummy, value in found}


def sha256(path):
    """Return the hexadecimal digest of a file; None where there is none."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for chunk in iter(lambda: stream.read(CHUNK), b""):
                digest.update(chunk)
    except EnvironmentError:
        return None
    return digest.hexdigest()


def fetch(url, path, proxies, timeout=60):
    """Write what URL has to PATH, or only ask for it where PATH is None; return a problem {code, detail}, None for none."""
    os.environ.update(proxies)  # urllib reads no_proxy from there only
    try:
        source = open_url(url, timeout=timeout)
        try:
            if path is not None:
                _copy(source, path)
        finally:
            source.close()
    except (EnvironmentError, ValueError, http.client.HTTPException, RefusedError) as error:
        return _problem(error)
    return None


def find(name, pages, proxies, timeout=60):
    """Return (address of the file NAME, what kept each of the places before from having it); the address is None where no place has it."""
    problems = []
    for page in pages:
        url, problem = _in_directory(name, page) if page.startswith("/") else _on_page(name, page, proxies, timeout)
        if url is not None:
            return url, problems
        problems.append("%s %s" % (without_password(page), problem))
    return None, problems


def _in_directory(name, directory):
    path = os.path.join(directory, name)
    return ("file://" + quote(path), None) if os.path.exists(path) else (None, "does not have it")


def _on_page(name, page, proxies, timeout):
    os.environ.update(proxies)
    try:
        source = open_url(page, timeout=timeout)
        try:
            text, base = source.read().decode("utf-8", "replace"), source.geturl()
        finally:
            source.close()
    except (EnvironmentError, ValueError, http.client.HTTPException, RefusedError) as error:
        return None, "cannot be read (%s)" % without_password(str(error))
    # A redirect within the place forgets the password that the page was named with.
    same = without_password(base) == without_password(page)
    return link_to(name, text, page if same else base), "does not link to it"


def link_to(name, text, base):
    """Return the address of the file NAME that a page at BASE links to, None without such a link."""
    for value in re.findall(r"""(?i)<a\s[^>]*?href\s*=\s*["']([^"']*)["']""", text):
        address = urljoin(base, unescape(value)).partition("#")[0]
        if unquote(urlsplit(address).path.rpartition("/")[2]) == name:
            return address
    return None


def _copy(source, path):
    with open(path, "wb") as target:
        for chunk in iter(lambda: source.read(CHUNK), b""):
            target.write(chunk)


def _problem(error):
    reason = getattr(error, "reason", error)
    code = "unreachable"
    if isinstance(error, ProxyError) or getattr(error, "code", None) == 407 or TUNNEL_REFUSED.match(str(reason)):
        code = "proxy_refused"
    elif isinstance(error, SSLValidationError) or isinstance(reason, ssl.SSLError):
        code = "certificate"
    elif getattr(error, "code", None):
        code = "answers"
    elif getattr(error, "errno", None) in DISK:
        code = "disk"
    return {"code": code, "detail": str(error)}


def without_password(url):
    """Return the address as it may be shown."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)
