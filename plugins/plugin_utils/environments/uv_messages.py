# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain why uv or pip failed, and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..packages.causes import UNKNOWN, Cause, Explanation, bounded, recognize
from ..problems.phrases import clean

__all__ = ["explain", "without_credentials"]

_SOURCES_HINT = "set python_env_index_url, python_env_find_links or gpu_stack_request"
_NETWORK = "check the network, set base_http_proxy if it needs a proxy, or " + _SOURCES_HINT
_SOLVE = "or solve again with frameworks_relock=true"
_LIST_HINT = "check the network and base_http_proxy, or repair what python_env_python_downloads names"
_MIRROR_HINT = "check the network and base_http_proxy, or set python_env_python_mirror"
# {sources}, {last} and the pattern's groups are filled in.
CAUSES = (
    Cause(
        "proxy_refused",
        r"407 Proxy Authentication|proxy authorization required",
        "the proxy requires a user name and password",
        "write them into the addresses base_http_proxy and base_https_proxy",
    ),
    Cause(
        "disk_full",
        r"No space left on device",
        "the file system of /opt/allreduce or of the temporary directory is full",
        "free some space and run again",
    ),
    Cause(
        "read_only",
        r"Read-only file system",
        "/opt/allreduce lies on a read-only file system",
        "mount it writable and run again",
    ),
    Cause(
        "no_interpreter",
        r"No interpreter found for (?P<wanted>Python [0-9.]+)",
        "this host has no {wanted}",
        "install it from the distribution, or set gpu_stack_request.python to a version that it has",
    ),
    Cause(
        "untrusted_certificate",
        r"invalid peer certificate|CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "the certificate of {sources} is not trusted",
        "add its authority with base_ca_certificates",
    ),
    Cause(
        "no_interpreter",
        r"No interpreter found at path `(?P<path>[^`]+)`",
        "this host has no {path}",
        "repair the package it comes from, or set python_env_python",
    ),
    Cause(
        "interpreter_mismatch",
        r"Hash mismatch for `(?P<build>cpython-[^`]+)`",
        "the download of {build} does not have the checksum of the list",
        "repair the source ({sources})",
    ),
    Cause(
        "interpreter_not_listed",
        r"No download found for request: (?P<build>\S+)",
        "the list of downloads has no {build}",
        "set gpu_stack_request.python to a version that it has, or name another list with python_env_python_downloads",
    ),
    Cause(
        "interpreter_list",
        r"(?:Error while fetching remote python downloads json from|Unable to parse the JSON Python download list at"
        r"|error: failed to open file) `(?P<list>[^`]+)`",
        "the list of downloads {list} cannot be read ({last})",
        _LIST_HINT,
    ),
    Cause(
        "interpreter_unreachable",
        r"Failed to install cpython-\S+\n(?:.*\n)*?.*(?:Failed to download|failed to query metadata of file) `(?P<url>[^`]+)`",
        "{url} cannot be downloaded ({last})",
        _MIRROR_HINT,
    ),
    Cause(
        "interpreter_unreachable",
        r"Failed to install (?P<build>cpython-\S+)\n",
        "{build} cannot be downloaded from {sources} ({last})",
        _MIRROR_HINT,
    ),
    Cause(
        "hash_mismatch",
        r"ash mismatch for `?(?P<package>[^`\s]+)`?",
        "the file found for {package} is not the one that was locked",
        "repair the source ({sources}), " + _SOLVE,
    ),
    Cause(
        "hash_mismatch",
        r"THESE PACKAGES DO NOT MATCH THE HASHES",
        "a file found in {sources} does not have the expected SHA-256",
        "repair that source",
    ),
    Cause(
        "unreachable",
        r"(?:Failed to fetch: |Failed to read `--find-links` URL: )`?(?P<url>[^\s`]+?)`?$",
        "{url} cannot be fetched ({last})",
        _NETWORK,
    ),
    Cause(
        "unreachable",
        r"connection broken by '(?:NewConnection|ConnectTimeout|NameResolution|Proxy|ReadTimeout)Error",
        "{sources} cannot be reached",
        _NETWORK,
    ),
    Cause(
        "no_solution",
        r"cause: Because (?P<because>[^\n]+?),? we can conclude",
        "no wheels fit ({because}); looked in {sources}",
        _SOURCES_HINT,
    ),
    Cause(
        "package_not_found",
        r"No matching distribution found for (?P<package>\S+)",
        "no wheel found for {package}; looked in {sources}",
        _SOURCES_HINT,
    ),
    Cause(
        "no_venv",
        r"ensurepip is not available|No module named '?venv",
        "the Python that creates uv's environment lacks its modules venv and ensurepip",
        "install the distribution's package that has them, such as python3-venv on Debian, and run again",
    ),
)


def without_credentials(url: str) -> str:
    """Return the address without user name and password."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", url)


def _sources(index_url: str, find_links: Iterable[str], no_index: bool, wheel_index: str | None) -> str:
    places = list(find_links)
    if not no_index:
        places += [place for place in (wheel_index, index_url or "the default package index") if place]
    return ", ".join(places) or "no place at all"


def explain(
    output: str,
    what: str,
    index_url: str = "",
    find_links: Iterable[str] = (),
    no_index: bool = False,
    wheel_index: str | None = None,
) -> Explanation:
    """Explain the failure of uv or pip; where no cause is known, the text has the last line of its output.

    output: its standard error; what: the beginning of the sentence; the rest: where wheels were looked for.
    """
    output = clean(bounded(output))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # Two things that only repeat what stands elsewhere in the sentence.
    last = re.sub(r"^(error|cause): | for url \(\S+\)$", "", lines[-1]) if lines else "no output"
    known = recognize(CAUSES, output)
    if known is None:
        return {"cause": UNKNOWN, "remedy": "", "text": without_credentials(f"{what}: {last}.")}
    cause, found = known
    values = {"sources": _sources(index_url, find_links, no_index, wheel_index), "last": last, **found.groupdict()}
    remedy = without_credentials(cause.remedy.format(**values))
    text = without_credentials(f"{what}: {cause.what.format(**values)}; {remedy}.")
    return {"cause": cause.code, "remedy": remedy, "text": text}
