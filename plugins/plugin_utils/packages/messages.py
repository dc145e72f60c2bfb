# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain why apt or dnf failed, and what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..problems.phrases import clean
from .causes import UNKNOWN, Cause, Explanation, recognize

_MIRROR = "for a mirror, repeat its synchronisation; otherwise wait until the repository is complete and run this again"
_LOCK = ("another package manager holds the lock{holder}", "let it finish, or stop it, and run this again")
_KEY = "set {key} to the file of the key that signs it and {key}_fingerprint to its fingerprint, if you trust that key"
_INDEX = "the signature of {source} does not match its index, which "
_COMPILER_LOG = r"(?P<file>/var/lib/dkms/\S+?/make\.log)"

# The first that is found counts: what is particular stands before what it brings along.
CAUSES = (
    Cause(
        "dkms_build_failed",
        _COMPILER_LOG,
        "a kernel module could not be built",
        "see {file} there",
    ),
    Cause(
        "disk_full",
        r"No space left on device|Insufficient space in download directory (?P<directory>\S+)|(?:don't|do not) have enough free space in (?P<file>\S+?)[.\s]|"
        r"At least (?P<size>\w+) more space needed on the (?P<place>\S+) filesystem|No space left",
        "the disk is full{where}",
        "free some space there and run this again",
    ),
    Cause(
        "lock_held",
        r"Failed to lock|Could not get lock|[Ll]ockfile is held|is locked by another|lock_timeout",
        *_LOCK,
    ),
    Cause(
        "proxy_refused",
        r"407\s+Proxy Authentication|(?:response 407|code 407 from proxy)",
        "the proxy requires a user name and password to fetch {source}",
        "write them into the addresses base_http_proxy and base_https_proxy",
    ),
    Cause(
        "untrusted_certificate",
        r"[Cc]ertificate verif\w+ failed|certificate verify failed|SSL peer certificate|SSL certificate problem",
        "the host does not trust the certificate of {source}",
        "name the authority that issued it, such as that of an inspecting proxy, in base_ca_certificates",
    ),
    Cause(
        "key_rejected",
        r"policy|SHA-?1.{0,80}(?:not considered secure|rejected)|Signing key on \w+ is not bound",
        "the host's policy rejects the key of {source}, which only SHA-1 binds to its name",
        "use a mirror that signs with a key of its own ({key}), or take the packages from the distribution",
    ),
    Cause(
        "unknown_key",
        r"NO_PUBKEY (?P<id>\w+)|Missing key (?P<id2>\w+)|[Nn]o public key|Signing key not found|keys? (?:listed|already installed).*not correct|NOKEY",
        "{source} is signed with a key{id} other than the one that is set",
        _KEY,
    ),
    Cause(
        "metadata_unsigned",
        r"GPG signature is not available\..{0,200}?(?:Status code: 404|Curl error \(37\))",
        "{source} carries no signed metadata",
        "mirror repodata/repomd.xml.asc too, or set cuda_repository_signed_metadata: false (packages are still verified)",
    ),
    Cause(
        "bad_signature",
        r"Bad GPG signature|GPG signature verification error",  # dnf does not tell one from the other
        _INDEX + "is only partly copied or signed with a key other than the one that is set",
        "for a mirror, repeat its synchronisation, or " + _KEY,
    ),
    Cause(
        "bad_signature",
        r"BADSIG|signatures? (?:were|was|is) invalid|[Bb]ad [Ss]ignature|GPG verification error",
        _INDEX + "was changed in transit or only partly copied",
        _MIRROR,
    ),
    Cause(
        "index_expired",
        r"is expired \(invalid since|is not valid yet|Release file expired",
        "the index of {source} has expired",
        _MIRROR + ", and check that the host's clock is right",
    ),
    Cause(
        "index_inconsistent",
        r"unexpected size|Hash Sum mismatch|checksum doesn't match|checksums? mismatch|Mirror sync in progress|connection closed",
        "the index of {source} and its files do not match",
        _MIRROR,
    ),
    Cause(
        "package_vanished",
        r"Failed to fetch (?P<url>\S+\.(?:deb|rpm))\s+404|\[MIRROR\] (?P<rpm>\S+\.rpm):.{0,80}404|(?P<rpm2>\S+\.rpm).{0,200}404|"
        r"Failed to download packages?: (?P<rpm3>\S+): ",
        "{url} is in the repository's index but no longer in the repository",
        _MIRROR,
    ),
    Cause(
        "server_error",
        r"(?P<code>\b5\d\d\b)\s+(?:Service|Bad|Gateway|Internal)|Status code: (?P<code2>5\d\d)|\berror: (?P<code3>5\d\d)\b",
        "{source} answers {code}",
        "wait until its server works again, or set {address} to a mirror, and run this again",
    ),
    Cause(
        "no_repository",
        r"(?:does not have|no longer has) a Release file|\b404\b",
        "there is no repository at {source}",
        "correct {address}",
    ),
    Cause(
        "unreachable",
        r"Could not (?:connect|resolve)|Connection (?:refused|failed|timed out)|Couldn't (?:connect|resolve)|timed out|"
        r"Temporary failure resolving|Unable to connect|(?:Network is|Host) unreachable|No route to host",
        "{source} cannot be reached",
        "check the host's network, set base_http_proxy if it needs a proxy, or set {address} to a mirror that it reaches",
    ),
    Cause(
        "package_not_found",
        r"[Vv]ersion '(?P<version>[^']+)' for '(?P<name>[^']+)' was not found|[Nn]o package matching '(?P<name2>[^']+)'|"
        r"No package (?P<name3>\S+) available|no available installation candidate for (?P<name4>[^=\s]+)=(?P<version2>\S+)",
        "no repository of the host has {name} {version}, which the plan names",
        "request another version in gpu_stack_request, or complete the mirror",
    ),
    Cause("lock_held", r"Waiting for process with pid \d+ to finish", *_LOCK),
    Cause(
        "dependency_conflict",
        r"unmet dependencies|held broken packages|nothing provides|[Dd]epsolve|[Cc]onflicting requests|pkgProblemResolver",
        "the packages conflict with what is installed or in the repositories ({lines})",
        "remove packages that were installed by hand, or complete the mirror",
    ),
)
_SETTINGS = {"key": "cuda_repository_key", "address": "cuda_repository_mirror"}


def text_of(result: Mapping) -> str:
    """Return everything that a failed task printed."""
    parts = [result.get(key) or "" for key in ("msg", "stderr", "stdout", "module_stderr")]
    parts += [json.dumps(result[key]) for key in ("failures", "results") if result.get(key)]
    return "\n".join(str(part) for part in parts)


def compiler_log(result: Mapping) -> str | None:
    """Return the file on the node with the compiler's messages, where a kernel module could not be built."""
    found = re.search(_COMPILER_LOG, text_of(result))
    return found["file"] if found else None


def explain(result: Mapping, holder: Mapping | None = None, source: str = "the repository") -> Explanation:
    """Explain a failed result, without what was being done; where no cause is known, the text is its message.

    A result that has a ``cause`` was explained before, and keeps what it says. holder: who has the package manager's
    lock; source: the repository, where the result does not name it.
    """
    output = clean(text_of(result))
    message = " ".join(clean(str(result.get("msg") or output)).split()).rstrip(".")
    if result.get("cause"):
        return {"cause": result["cause"], "remedy": result.get("remedy") or "", "text": message}
    known = recognize(CAUSES, output)
    if known is None:
        return {"cause": UNKNOWN, "remedy": "", "text": message}
    cause, found = known
    values = _fillings(found, output, holder, source)
    remedy = cause.remedy.format(**values)
    return {"cause": cause.code, "remedy": remedy, "text": f"{cause.what.format(**values)}: {remedy}"}


def _fillings(found: re.Match, text: str, holder: Mapping | None, source: str) -> dict:
    groups = {}
    for name, value in found.groupdict().items():
        if value:
            groups[name.rstrip("234")] = value
    asked = re.search(
        r"(?:The repository '|Failed to fetch |Release file for |Curl error \(\d+\): [^:]*? for )(\w+:/\S+)", text
    )
    place = groups.get("place") or groups.get("file") or groups.get("directory")
    return {
        **_SETTINGS,
        "name": "",
        "version": "",
        "file": "",
        "code": "an error",
        "source": asked.group(1).strip("'") if asked else source,
        "url": groups.get("url") or groups.get("rpm") or "a package",
        "lines": _problem_lines(text),
        **{key: value for key, value in groups.items() if key not in ("id", "rpm")},
        "id": f" ({groups['id']})" if "id" in groups else "",
        "where": f" ({place})" if place else "",
        "holder": f" (process {holder['pid']}, {holder['program']})" if holder else "",
    }


def _problem_lines(text: str) -> str:
    lines = [line.strip(" -") for line in text.splitlines()]
    wanted = [line for line in lines if re.search(r"Depends:|Conflicts:|Breaks:|requires |provides |conflicts ", line)]
    return "; ".join(dict.fromkeys(wanted[:4])) or "see the message above"
