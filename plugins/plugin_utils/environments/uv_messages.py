# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in one sentence why uv or pip failed, and what to change. Pure: recorded output in, sentence out."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["explain", "without_credentials"]

_SOURCES_HINT = "set python_env_index_url, python_env_find_links or gpu_stack_request"
# Cause in the tool's output -> what happened and what to do. {what}, {sources} and the pattern's groups are filled in.
_CAUSES = (
    (
        r"No space left on device",
        "{what}: the file system of /opt/allreduce or of the temporary directory is full; free some space and run again.",
    ),
    (
        r"Read-only file system",
        "{what}: /opt/allreduce lies on a read-only file system; mount it writable and run again.",
    ),
    (
        r"No interpreter found for (?P<wanted>Python [0-9.]+)",
        "{what}: this host has no {wanted}; install it from the distribution, or set gpu_stack_request.python to a version it has.",
    ),
    (
        r"ash mismatch for `?(?P<package>[^`\s]+)`?",
        "{what}: the file found for {package} is not the one that was locked; repair the source ({sources}), "
        "or solve anew with frameworks_relock=true.",
    ),
    (
        r"THESE PACKAGES DO NOT MATCH THE HASHES",
        "{what}: a file found in {sources} does not have the expected SHA-256; repair that source.",
    ),
    (
        r"invalid peer certificate|CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "{what}: the certificate of {sources} is not trusted; add its authority with base_ca_certificates.",
    ),
    (
        r"(?:Failed to fetch: |Failed to read `--find-links` URL: )`?(?P<url>[^\s`]+?)`?$",
        "{what}: {url} cannot be fetched ({last}); check proxy and network, or " + _SOURCES_HINT + ".",
    ),
    (
        r"cause: Because (?P<because>[^\n]+?),? we can conclude",
        "{what}: no wheels fit ({because}); looked in {sources}; " + _SOURCES_HINT + ".",
    ),
    (
        r"No matching distribution found for (?P<package>\S+)",
        "{what}: no wheel found for {package}; looked in {sources}; " + _SOURCES_HINT + ".",
    ),
    (
        r"ensurepip is not available|No module named '?venv",
        "{what}: the distribution's venv package is missing; install python3-venv and run again.",
    ),
)


def without_credentials(url: str) -> str:
    """The address without user name and password."""
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
) -> str:
    """One sentence for a failed uv or pip.

    output: its standard error; what: the beginning of the sentence; the rest: where wheels were looked for
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = re.sub(r"^(error|cause): ", "", lines[-1]) if lines else "no output"
    sources = _sources(index_url, find_links, no_index, wheel_index)
    for pattern, sentence in _CAUSES:
        match = re.search(pattern, output, re.MULTILINE)
        if match:
            return without_credentials(sentence.format(what=what, sources=sources, last=last, **match.groupdict()))
    return without_credentials(f"{what}: {last}.")
