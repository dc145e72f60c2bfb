# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain why apt or dnf failed, and what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..problems.phrases import clean
from .causes import UNKNOWN, Cause, Explanation, bounded, recognize

_MIRROR = "for a mirror, repeat its synchronisation; otherwise wait until the repository is complete and run this again"
_LOCK = ("another package manager holds the lock{holder}", "let it finish, or stop it, and run this again")
_INTERRUPTED = (
    "an installation of packages was interrupted",
    "run site, whose role base finishes it, or dpkg --configure --pending and apt-get --fix-broken install there",
)
_RPM_LOCK = "can't create transaction lock"
_INDEX = "the signature of {source} does not match its index, which "
_COMPILER_LOG = r"(?P<file>/var/lib/dkms/\S+?/make\.log)"
_HELD = "let go of it with apt-mark unhold, dnf versionlock delete, or excludepkgs in /etc/dnf/dnf.conf and /etc/yum.repos.d, and run this again"
# What a remedy says of NVIDIA's repository, which a role sets up, and of any other.
_NVIDIA = {
    "key": "cuda_repository_key",
    "address": "cuda_repository_mirror",
    "trust": "set cuda_repository_key to the file of the key that signs it and cuda_repository_key_fingerprint to its fingerprint, "
    "if you trust that key",
    "unsigned": "set cuda_repository_signed_metadata: false",
}
_OTHER = {
    "key": "Signed-By or gpgkey of its entry",
    "address": "the address of its entry among the host's package sources (base_apt_mirror or base_dnf_mirror, if it is the distribution's)",
    "trust": "correct or remove its entry among the host's package sources",
    "unsigned": "set repo_gpgcheck=0 in its entry",
}

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
        r"At least (?P<size>\w+) more space needed on the (?P<place>\S+) filesystem|needs (?P<size2>\w+) more space on the (?P<place2>\S+) filesystem|"
        r"No space left|Disk quota exceeded",
        "the disk is full{where}",
        "free some space there and run this again",
    ),
    Cause(
        "read_only",
        r"Read-only file system",
        "a file system of the host accepts no writes",
        "check the kernel's log for errors of its disk, and mount it for writing again",
    ),
    Cause(
        "lock_held",
        rf"Failed to lock|Could not get lock|[Ll]ockfile is held|(?:is|was) locked by another|{_RPM_LOCK}|lock_timeout|"
        r"[Uu]nable to (?:acquire|lock) the [^\n]{0,120}is another process using it|Failed to obtain \S*\s?transaction lock",
        *_LOCK,
    ),
    Cause(
        "interrupted",
        r"dpkg was interrupted|needs to be reinstalled, but I can't find an archive|in a very bad inconsistent state",
        *_INTERRUPTED,
    ),
    Cause(
        "database_damaged",
        r"rpmdb open failed|BDB0113|rpmdb: damaged",
        "rpm's database is damaged",
        "run rpm --rebuilddb there, and run this again",
    ),
    Cause(
        "database_damaged",
        r"package lists or status file could not be parsed|package cache file is corrupted|Unable to parse package file",
        "apt's lists are damaged",
        "remove the files in /var/lib/apt/lists and /var/cache/apt/*.bin there, and run this again",
    ),
    Cause(
        "sources_contradict",
        r"Conflicting values set for option (?P<option>\S+) regarding source (?P<source>\S+) \S+?(?P<values>: \S* != ?[^\s,]*)?(?=[,\s]|$)",
        "the host's package sources name {source} more than once, with values of {option} that contradict each other{values}",
        "keep one of its entries in /etc/apt/sources.list and /etc/apt/sources.list.d, remove the others, and run this again",
    ),
    Cause(
        "sources_unreadable",
        r"Malformed (?:entry|stanza|line) \d+ in (?:list|source|sources)(?: list| file)? (?P<file>\S+)|"
        r"Type '\S+' is not known on \S+ \d+ in source list (?P<file2>\S+)|Invalid value set for option \S+ regarding source (?P<file3>\S+)|"
        r"Parsing file [\"'](?P<file4>[^\"']+)[\"'] failed|The list of sources could not be read",
        "the package manager cannot read its list of sources ({file})",
        "correct or remove that entry, and run this again",
    ),
    Cause(
        "proxy_refused",
        r"407\s+Proxy Authentication|(?:response 407|code 407 from proxy)",
        "the proxy requires a user name and password to fetch {source}",
        "write them into the addresses base_http_proxy and base_https_proxy",
    ),
    Cause(
        "untrusted_certificate",
        r"[Cc]ertificate verif\w+ failed|certificate verify failed|SSL peer certificate|SSL certificate problem|Problem with the SSL CA cert",
        "the host does not trust the certificate of {source}",
        "name the authority that issued it, such as that of an inspecting proxy, in base_ca_certificates",
    ),
    Cause(
        "not_an_index",
        r"Clearsigned file isn't valid|NOSPLIT|NODATA|Splitting up \S+ into data and signature failed|repomd\.xml parser error",
        "what answers for {source} is not a repository, but perhaps a login page or a proxy",
        "check what the host gets from that address, and set {address} to one that it reaches",
    ),
    Cause(
        "keyring_unreadable",
        r"key\(s\) in the keyring (?P<file>\S+) are ignored|Failed to parse keyring [\"'](?P<file2>[^\"']+)|Permission denied reading [\"'](?P<file3>[^\"']+)",
        "the package manager cannot read the keyring {file}",
        "make it readable for everybody and its contents OpenPGP keys, armored ones in a file that ends with .asc",
    ),
    Cause(
        "key_expired",
        r"EXPKEYSIG (?P<id>\w+)|KEYEXPIRED|Signing key on (?P<id2>\w+) is not (?:alive|live)|Expired on \d{4}-",
        "the key{id} that signs {source} has expired",
        "check that the host's clock is right; if it is, get the renewed key: {trust}",
    ),
    Cause(
        "key_revoked",
        r"REVKEYSIG (?P<id>\w+)|KEYREVOKED|key on (?P<id2>\w+) is revoked",
        "the key{id} that signs {source} was withdrawn by its owner",
        "get the key that took its place: {trust}",
    ),
    Cause(
        "index_not_valid_yet",
        r"is not valid yet|Not live until",
        "the index of {source} is not valid yet",
        "set the host's clock, which is behind, and run this again",
    ),
    Cause(
        "key_rejected",
        r"[Pp]olicy reject(?:ed|s)|SHA-?1.{0,80}(?:not considered secure|rejected)|Signing key on \w+ is not bound",
        "the host's policy rejects the key of {source} as too weak, often since only SHA-1 binds it to its name",
        "use a mirror that signs with a key of its own ({key}), or take the packages from the distribution",
    ),
    Cause(
        "key_not_fetched",
        r"Failed to retrieve GPG key|GPG key retrieval failed",
        "the key of {source} cannot be fetched",
        "correct gpgkey of its entry in /etc/yum.repos.d",
    ),
    Cause(
        "unknown_key",
        r"NO_PUBKEY (?P<id>\w+)|Missing key (?P<id2>\w+)|[Nn]o public key|Signing key not found|keys? (?:listed|already installed).*not correct|NOKEY|"
        r"Public key for \S+ is not installed|key\(s\) didn't help",
        "{source} is signed with a key{id} other than the one that is set",
        "{trust}",
    ),
    Cause(
        "package_unsigned",
        r"Package (?P<name>\S+) is not signed|unauthenticated packages|packages could not be authenticated",
        "a package is not signed ({lines})",
        "take it from a repository that signs its packages, or mirror it again",
    ),
    Cause(
        "metadata_unsigned",
        r"GPG signature is not available\..{0,200}?(?:Status code: 404|Curl error \(37\))",
        "{source} carries no signed metadata",
        "mirror repodata/repomd.xml.asc too, or {unsigned} (packages are still verified)",
    ),
    Cause(
        "bad_signature",
        r"Bad GPG signature|GPG signature verification error",  # dnf does not tell one from the other
        _INDEX + "is only partly copied or signed with a key other than the one that is set",
        "for a mirror, repeat its synchronisation, or {trust}",
    ),
    Cause(
        "bad_signature",
        r"BADSIG|signatures? (?:were|was|is) invalid|[Bb]ad [Ss]ignature|GPG verification error",
        _INDEX + "was changed in transit or only partly copied",
        _MIRROR,
    ),
    Cause(
        "index_expired",
        r"is expired \(invalid since|Release file expired",
        "the index of {source} has expired",
        _MIRROR + ", and check that the host's clock is right",
    ),
    Cause(
        "release_renamed",
        r"Repository '(?P<source>[^']+?)(?: InRelease| Release)?' changed its '(?P<option>[^']+)' value from '(?P<old>[^']*)' to '(?P<new>[^']*)'",
        "{source} changed its {option} from {old} to {new}",
        "name the release of the host in that entry, or, if you want the new one, run apt-get update --allow-releaseinfo-change there",
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
        r"(?P<code>\b(?:5\d\d|429)\b)\s+(?:Service|Bad|Gateway|Internal|Too Many)|Status code: (?P<code2>5\d\d|429)|\berror: (?P<code3>5\d\d|429)\b",
        "{source} answers {code}",
        "wait until its server works again, or set {address} to a mirror, and run this again",
    ),
    Cause(
        "access_denied",
        r"\b40[13]\s+(?:Forbidden|Unauthorized)|Status code: 40[13]|\berror: 40[13]\b",
        "{source} denies access",
        "give the host what it asks for, such as a subscription or a user name and password in its address, or set {address} to a mirror",
    ),
    Cause(
        "no_repository",
        r"(?:does not have|no longer has) a Release file|\b404\b|File not found - ",
        "there is no repository at {source}",
        "correct {address}",
    ),
    Cause(
        "no_repository",
        r"There are no enabled repo",
        "no package source is enabled on the host",
        "enable those of its distribution, or register it where they need a subscription",
    ),
    Cause(
        "no_mirror",
        r"No URLs in mirrorlist",
        "the list of mirrors of {source} names none, as for a release that is past its end of life",
        "set {address} to a mirror that still has it",
    ),
    Cause(
        "unreachable",
        r"Could not (?:connect|resolve)|Connection (?:refused|failed|timed out|reset)|Couldn't (?:connect|resolve)|timed out|Timeout was reached|"
        r"Temporary failure resolving|Unable to connect|(?:Network is|Host) unreachable|No route to host|SSL connect error|"
        r"[Aa]ll mirrors were (?:already )?tried|Error reading from server|Could not handshake|"
        r"Curl error \((?:16|18|52|55|56|92)\)",
        "{source} cannot be reached",
        "check the host's network, set base_http_proxy if it needs a proxy, or set {address} to a mirror that it reaches",
    ),
    Cause(
        "module_stream",
        r"filtered out by modular filtering|[Mm]odular dependency problem|switch enabled streams of a module|switching of module|"
        r"module \S+ (?:from \S+ )?conflicts with module",
        "the stream of a dnf module that is enabled on the host is not the planned one ({lines})",
        "run dnf module reset with the name of that module there, and run this again",
    ),
    Cause(
        "package_held",
        r"filtered out by exclude filtering",
        "a package is locked or excluded on the host ({lines})",
        _HELD,
    ),
    Cause(
        "package_held",
        r"held packages will be changed:\s+(?P<name>[^\n]+)|Held packages were changed",
        "a package is held on the host ({name})",
        _HELD,
    ),
    Cause(
        "package_not_found",
        r"[Vv]ersion '(?P<version>[^']+)' for '(?P<name>[^']+)' was not found|[Nn]o package matching '(?P<name2>[^']+)'|"
        r"No package (?P<name3>\S+) available|no available installation candidate for (?P<name4>[^=\s]+)=(?P<version2>\S+)|"
        r"Unable to locate package (?P<name5>\S+)|Package '(?P<name6>[^']+)' has no installation candidate|"
        r"(?:No match for argument|Unable to find a match|missing groups or modules): (?P<name7>\S+)",
        "no repository of the host has {package}, which the plan names",
        "request another version in gpu_stack_request, or complete the mirror",
    ),
    Cause("lock_held", r"Waiting for process with pid \d+ to finish", *_LOCK),
    Cause(
        "file_conflict",
        r"trying to overwrite (?:shared )?'(?P<file>[^']+)', which is (?:also in|different from other instances of) package (?P<name>[^\s:]+)|"
        r"file (?P<file2>/\S+) (?:from install of \S+ )?conflicts (?:with file from package|between attempted installs of) (?P<name2>\S+)",
        "{file} is in {name}, too",
        "remove {name} if it was installed by hand, and run this again",
    ),
    Cause(
        "dependency_conflict",
        r"unmet dependencies|held broken packages|nothing provides|[Dd]epsolve|[Cc]onflicting (?:requests|assignments)|pkgProblemResolver|"
        r"Unable to satisfy dependencies|package \S+ conflicts with \S+ provided by|none of the providers can be installed|cannot install (?:both|the best)",
        "the packages conflict with what is installed or in the repositories ({lines})",
        "remove packages that were installed by hand, or complete the mirror",
    ),
    Cause(
        "script_failed",
        r"error processing (?:package|archive) (?P<name>\S+) \(--\S+\):\s+(?:(?:installed|new|old) \S+ package \S+ script|subprocess)|"
        r"Error in \w+ scriptlet in rpm package (?P<name2>\S+)|%\w+\((?P<name3>[^)]+)\) scriptlet failed",
        "a script of the package {name} failed",
        "see what it printed above, fix that on the host, and run this again",
    ),
    Cause(
        "interrupted",
        r"dependency problems prevent configuration of|is not configured yet",
        *_INTERRUPTED,
    ),
)


def text_of(result: Mapping) -> str:
    """Return the output of a failed task; of a part with much of it, the beginning and the end."""
    parts = [result.get(key) or "" for key in ("msg", "stderr", "stdout", "module_stderr")]
    parts += [json.dumps(result[key]) for key in ("failures", "results") if result.get(key)]
    return "\n".join(bounded(str(part)) for part in parts)


def compiler_log(result: Mapping) -> str | None:
    """Return the file on the node with the compiler's messages, where a kernel module could not be built."""
    found = re.search(_COMPILER_LOG, text_of(result))
    return found["file"] if found else None


def is_rpm_locked(result: Mapping) -> bool:
    """Tell whether another process holds the lock of rpm itself, for which neither rpm nor dnf waits."""
    return re.search(_RPM_LOCK, text_of(result)) is not None


def is_for_damaged_lists(result: Mapping) -> bool:
    """Tell whether damaged lists of the repositories may be why: they lack packages, or cannot be read."""
    known = recognize(CAUSES, clean(text_of(result)))
    return known is not None and known[0].code in ("database_damaged", "package_not_found")


def explain(result: Mapping, holder: Mapping | None = None, source: str | None = None) -> Explanation:
    """Explain a failed result, without what was being done; where no cause is known, the text is its message.

    A result that has a ``cause`` was explained before, and keeps what it says. holder: who has the package manager's
    lock; source: the address of NVIDIA's repository, where the result names no other.
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


def _fillings(found: re.Match, text: str, holder: Mapping | None, given: str | None) -> dict:
    groups = {}
    for name, value in found.groupdict().items():
        if value:
            groups[name.rstrip("234567")] = value
    # apt forgets to fill some in: "<set>".
    named = "an archive" if groups.get("source", "").startswith("<") else groups.get("source")
    source = named or _source(text) or given or _repository(text) or "the repository"
    is_nvidia = source.startswith(given or "the repository") or re.search("cuda|nvidia", source)
    place = groups.get("place") or groups.get("file") or groups.get("directory")
    return {
        **(_NVIDIA if is_nvidia else _OTHER),
        "name": "",
        "package": " ".join(filter(None, (groups.get("name"), groups.get("version")))),
        "file": "see the message above",
        "code": "an error",
        "source": source,
        "url": groups.get("url") or groups.get("rpm") or "a package",
        "lines": _problem_lines(text),
        **{key: value for key, value in groups.items() if key not in ("id", "rpm", "source")},
        "id": f" ({groups['id']})" if "id" in groups else "",
        "where": f" ({place})" if place else "",
        "values": _values(groups.get("values")),
        "holder": f" (process {holder['pid']}, {holder['program']})" if holder else "",
    }


def _source(text: str) -> str | None:
    """Return the address that the failure names."""
    named = r"The repository '|Failed to fetch |Release file for |GPG error: |signature verification failed: |Status code: \d+ for |"
    found = re.search(rf"(?:{named}Curl error \(\d+\): [^:]*? for )(\w+:/\S+)", text)
    return found[1].strip("'") if found else None


def _repository(text: str) -> str | None:
    """Return the name that dnf has for the repository of which it speaks."""
    found = re.search(r"\brepo(?:sitory)? '([^']+)'", text)
    return f"repository {found[1]}" if found else None


def _values(named: str | None) -> str:
    """Return both values of a contradiction, which apt names as ``: one != other``."""
    return f" ({', '.join(value.strip() or 'none' for value in named[2:].split(' !='))})" if named else ""


def _problem_lines(text: str) -> str:
    lines = [line.strip(" -") for line in text.splitlines()]
    words = r"Depends:?\s|Conflicts:|Breaks:|requires |provides |conflicts |filtered out|switching of module|not signed|authenticated|cannot install"
    wanted = [line for line in lines if re.search(words, line)]
    return "; ".join(dict.fromkeys(wanted[:4])) or "see the message above"
