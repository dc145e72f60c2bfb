# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt and dnf really print, seen on hosts whose mirror misbehaves (tests/scenarios/test_60_faults.py)."""

import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.uv_messages import explain as explain_uv
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.messages import CAUSES, compiler_log, explain

URL = "http://mirror.example.org/cuda/repos/ubuntu2204/x86_64"
UNSIGNED = f"E:The repository '{URL}  InRelease' is not signed."
FAILURES = {
    "503": (
        "server_error",
        f"E:Failed to fetch {URL}/InRelease  503  Service Unavailable [IP: 192.0.2.2 80], {UNSIGNED}",
        ["answers 503", "cuda_repository_mirror"],
    ),
    "404": (
        "no_repository",
        f"W:See apt-secure(8)., E:The repository '{URL}  Release' does not have a Release file.",
        [f"there is no repository at {URL}:", "correct cuda_repository_mirror"],
    ),
    "404 of what was there": (
        "no_repository",
        f"E:The repository '{URL}  Release' no longer has a Release file.",
        [f"there is no repository at {URL}:"],
    ),
    "truncated": (
        "index_inconsistent",
        f"E:Failed to fetch {URL}/Packages.gz  File has unexpected size (114154 != 228309). Mirror sync in progress?",
        ["do not match", "repeat its synchronisation"],
    ),
    "bad signature": (
        "bad_signature",
        f"W:GPG error: {URL}  InRelease: The following signatures were invalid: BADSIG 952E0B123797B248 a, {UNSIGNED}",
        ["signature", "does not match its index"],
    ),
    "unknown key": (
        "unknown_key",
        "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 71860AA6D5C0E11A, "
        + UNSIGNED,
        ["a key (71860AA6D5C0E11A)", "cuda_repository_key_fingerprint"],
    ),
    "dnf, no signature": (
        "metadata_unsigned",
        "Error: Failed to download metadata for repo 'allreduce-cuda': GPG verification is enabled, but GPG signature is not available. "
        "This may be an error or the repository does not support GPG verification: Status code: 404 for "
        "http://10.1.2.3/cuda/repodata/repomd.xml.asc (IP: 10.1.2.3)",
        ["carries no signed metadata", "mirror repodata/repomd.xml.asc too", "cuda_repository_signed_metadata: false"],
    ),
    "dnf, no signature in a directory": (
        "metadata_unsigned",
        "GPG verification is enabled, but GPG signature is not available. This may be an error or the repository does not support GPG "
        "verification: Curl error (37): Couldn't read a file:// file for file:///srv/cuda/repodata/repomd.xml.asc",
        ["carries no signed metadata"],
    ),
    "dnf, the server fails before the signature": (
        "server_error",
        "GPG verification is enabled, but GPG signature is not available. This may be an error or the repository does not support GPG "
        "verification: Status code: 503 for http://10.1.2.3/cuda/repodata/repomd.xml.asc (IP: 10.1.2.3)",
        ["answers 503"],
    ),
    "dnf, bad signature or unknown key": (
        "bad_signature",
        "Error: Failed to download metadata for repo 'cuda': repomd.xml GPG signature verification error: Bad GPG signature",
        [
            "the signature of repository cuda does not match its index",
            "signed with a key",
            "cuda_repository_key_fingerprint",
        ],
    ),
    "expired": (
        "index_expired",
        f"E:Release file for {URL}/InRelease is expired (invalid since 30d 0h 4min 1s).",
        [f"the index of {URL}", "has expired", "clock"],
    ),
    "vanished": (
        "package_vanished",
        f"'/usr/bin/apt-get -y' failed: E: Failed to fetch {URL}/libnvidia-compute-550_550.54.15-0ubuntu1_amd64.deb  404  Not Found",
        [
            "libnvidia-compute-550_550.54.15-0ubuntu1_amd64.deb is in the repository's index but no longer in the repository"
        ],
    ),
    "dnf waited for a lock": (
        "lock_held",
        "non-zero return code\nWaiting for process with pid 4711 to finish.",
        ["another package manager holds the lock: let it finish"],
    ),
    "dnf has no room for downloads": (
        "disk_full",
        "Error: Insufficient space in download directory /var/cache/dnf/cuda-1/packages\n    * free   0.0 B\n    * needed 1.2 G",
        ["the disk is full (/var/cache/dnf/cuda-1/packages): free some space"],
    ),
    "not in the repository": (
        "package_not_found",
        "no package matching 'nvidia-fabricmanager-550=1' is available",
        ["no repository of the host has nvidia-fabricmanager-550=1, which the plan names"],
    ),
    "not in the repository with that version": (
        "package_not_found",
        "no available installation candidate for nvidia-fabricmanager-535=535.309.01-*",
        [
            "no repository of the host has nvidia-fabricmanager-535 535.309.01-*, which the plan names",
            "complete the mirror",
        ],
    ),
    "full disk": (
        "disk_full",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        ["the disk is full (/var/cache/apt/archives/)"],
    ),
    "DKMS": (
        "dkms_build_failed",
        "Consult /var/lib/dkms/nvidia/550.54.15/build/make.log for more information.",
        ["a kernel module could not be built: see /var/lib/dkms/nvidia/550.54.15/build/make.log"],
    ),
    "key that the policy rejects": (
        "key_rejected",
        f"W:OpenPGP signature verification failed: {URL}  InRelease: Sub-process /usr/bin/sqv returned an error code (1), "
        "error message is: Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: Policy rejected "
        f"non-revocation signature (PositiveCertification) requiring second pre-image resistance, {UNSIGNED}",
        [f"the host's policy rejects the key of {URL}", "use a mirror that signs with a key of its own"],
    ),
    "no way to the server": (
        "unreachable",
        f"E:Failed to fetch {URL}/InRelease  Could not connect to 192.0.2.2:80 (192.0.2.2). - connect (113: No route to host)",
        [f"{URL}/InRelease cannot be reached", "proxy", "cuda_repository_mirror"],
    ),
    "no route, no name": (
        "unreachable",
        "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'\n"
        "W: Some index files failed to download. They have been ignored, or old ones used instead.",
        ["http://deb.debian.org/debian/dists/bookworm/InRelease cannot be reached", "set base_http_proxy"],
    ),
    "proxy without a password": (
        "proxy_refused",
        f"E: Failed to fetch {URL}/Packages  407  Proxy Authentication Required [IP: 192.0.2.3 3128]",
        [f"the proxy requires a user name and password to fetch {URL}/Packages", "base_http_proxy"],
    ),
    "proxy without a password, https": (
        "proxy_refused",
        f"W: Failed to fetch {URL}/InRelease  Invalid response from proxy: HTTP/1.1 407 Proxy Authentication Required  "
        "Server: squid/5.7  Content-Length: 3094  X-Squid-Error: ERR_CACHE_ACCESS_DENIED 0  [IP: 192.0.2.3 3128]",
        [f"the proxy requires a user name and password to fetch {URL}/InRelease", "base_http_proxy"],
    ),
    "inspecting proxy": (
        "untrusted_certificate",
        f"W: Failed to fetch {URL}/InRelease  Certificate verification failed: The certificate is NOT trusted. The certificate "
        "issuer is unknown.  Could not handshake: Error in the certificate verification. [IP: 192.0.2.3 3128]",
        [f"the host does not trust the certificate of {URL}/InRelease", "base_ca_certificates"],
    ),
    "apt, a key and another": (
        "sources_contradict",
        f"E:Conflicting values set for option Signed-By regarding source {URL}/ /: /usr/share/keyrings/cuda-archive-keyring.gpg != "
        "/etc/apt/keyrings/nvidia.asc, E:The list of sources could not be read.",
        [
            f"name {URL}/ more than once",
            "Signed-By",
            "(/usr/share/keyrings/cuda-archive-keyring.gpg, /etc/apt/keyrings/nvidia.asc)",
        ],
    ),
    "apt, a key and none": (
        "sources_contradict",
        f"E: Conflicting values set for option Signed-By regarding source {URL}/ /: /a.gpg != \nE: The list of sources could not be read.",
        ["(/a.gpg, none)", "/etc/apt/sources.list.d"],
    ),
    "apt, trusted and not": (
        "sources_contradict",
        f"E: Conflicting values set for option Trusted regarding source {URL}/ /\nE: The list of sources could not be read.",
        ["with values of Trusted that contradict each other: keep"],
    ),
    "apt, insecure and not": (
        "sources_contradict",
        "E: Conflicting values set for option ALLOW_INSECURE regarding source <set> <unset>\nE: The list of sources could not be read.",
        ["name an archive more than once, with values of ALLOW_INSECURE that contradict each other: keep"],
    ),
    "apt, a list that is none": (
        "sources_unreadable",
        "E: Malformed entry 1 in list file /etc/apt/sources.list.d/a.list (Component)\nE: The list of sources could not be read.",
        ["/etc/apt/sources.list.d/a.list"],
    ),
    "apt, a type that is none": (
        "sources_unreadable",
        "E: Type 'debx' is not known on line 1 in source list /etc/apt/sources.list.d/a.list\nE: The list of sources could not be read.",
        ["/etc/apt/sources.list.d/a.list"],
    ),
    "apt, a stanza that is none": (
        "sources_unreadable",
        "E:Malformed entry 1 in sources file /etc/apt/sources.list.d/b.sources (Suite), E:The list of sources could not be read.",
        ["/etc/apt/sources.list.d/b.sources"],
    ),
    "expired key": (
        "key_expired",
        f"W:GPG error: {URL}  InRelease: The following signatures were invalid: EXPKEYSIG A4B469963BF863CC cudatools, {UNSIGNED}",
        ["A4B469963BF863CC", "has expired", "clock"],
    ),
    "expired key, older gpgv": (
        "key_expired",
        f"W: GPG error: {URL} Release: The following signatures were invalid: KEYEXPIRED 1525416977  KEYEXPIRED 1525416977",
        ["has expired"],
    ),
    "expired key, sqv": (
        "key_expired",
        f"W: OpenPGP signature verification failed: {URL} InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: "
        f"Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not alive: Expired on 2026-02-03T00:00:00Z, {UNSIGNED}",
        ["EB693B3035CD5710E231E123A4B469963BF863CC", "has expired"],
    ),
    "revoked key": (
        "key_revoked",
        f"W:GPG error: {URL}  InRelease: The following signatures were invalid: REVKEYSIG A4B469963BF863CC cudatools, {UNSIGNED}",
        ["A4B469963BF863CC", "withdrawn"],
    ),
    "keyring that apt cannot read": (
        "keyring_unreadable",
        "W: GPG error: http://x.example jammy InRelease: The following signatures couldn't be verified because the public key is not "
        "available: NO_PUBKEY 71860AA6D5C0E11A\nW: http://x.example/dists/jammy/InRelease: The key(s) in the keyring "
        "/etc/apt/keyrings/x.gpg are ignored as the file is not readable by user '_apt' executing apt-key.",
        ["/etc/apt/keyrings/x.gpg"],
    ),
    "keyring that sqv cannot read": (
        "keyring_unreadable",
        "W: OpenPGP signature verification failed: http://x.example trixie InRelease: Sub-process /usr/bin/sqv returned an error code (1), "
        'error message is: Error: Failed to parse keyring "/etc/apt/keyrings/x.asc"  Caused by: 0: Reading "/etc/apt/keyrings/x.asc": EOF',
        ["/etc/apt/keyrings/x.asc"],
    ),
    "dnf, the key of a package": (
        "unknown_key",
        "Failed to validate GPG signature for cuda-toolkit-12-4-12.4.1-1.x86_64: Public key for cuda-toolkit-12-4-12.4.1-1.x86_64.rpm is not installed",
        ["is signed with a key other than"],
    ),
    "dnf, a package without a signature": (
        "package_unsigned",
        "Failed to validate GPG signature for site-1.0-1.x86_64: Package site-1.0-1.x86_64.rpm is not signed",
        ["site-1.0-1.x86_64.rpm"],
    ),
    "dnf, no key file": (
        "key_not_fetched",
        "Failed to retrieve GPG key for repo 'site': Curl error (37): Couldn't read a file:// file for file:///etc/pki/rpm-gpg/SITE "
        "[Couldn't open file /etc/pki/rpm-gpg/SITE]",
        ["repository site", "gpgkey"],
    ),
    "dnf, no key at its address": (
        "key_not_fetched",
        "Error: GPG key retrieval failed: Status code: 404 for https://site.example/KEY (IP: 192.0.2.9)",
        ["https://site.example/KEY", "gpgkey"],
    ),
    "of tomorrow": (
        "index_not_valid_yet",
        f"E: Release file for {URL}/InRelease is not valid yet (invalid for another 5h 12min 3s). Updates for this repository will not be applied.",
        [f"the index of {URL}/InRelease", "clock"],
    ),
    "of tomorrow, sqv": (
        "index_not_valid_yet",
        f"W: OpenPGP signature verification failed: {URL} InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: "
        f"Verifying signature: Not live until 2026-11-27T04:00:00Z, {UNSIGNED}",
        ["clock"],
    ),
    "release under another name": (
        "release_renamed",
        "E: Repository 'http://deb.debian.org/debian stable InRelease' changed its 'Codename' value from 'bookworm' to 'trixie'\n"
        "N: This must be accepted explicitly before updates for this repository can be applied. See apt-secure(8) manpage for details.",
        ["http://deb.debian.org/debian stable", "Codename", "from bookworm to trixie"],
    ),
    "login page": (
        "not_an_index",
        f"E: Failed to fetch {URL}/InRelease  Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)",
        [f"{URL}/InRelease", "login page"],
    ),
    "dnf, login page": (
        "not_an_index",
        "Error: Failed to download metadata for repo 'allreduce-cuda': repomd.xml parser error: Parse error at line: 1 (Opening and "
        "ending tag mismatch: meta line 1 and head)",
        ["repository allreduce-cuda"],
    ),
    "dnf, no mirror in the list": (
        "no_mirror",
        "Error: Failed to download metadata for repo 'appstream': Cannot prepare internal mirrorlist: No URLs in mirrorlist",
        ["repository appstream", "base_dnf_mirror"],
    ),
    "dnf, no mirror answers": (
        "unreachable",
        "Failed to download metadata for repo 'baseos': Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried",
        ["repository baseos cannot be reached", "base_dnf_mirror"],
    ),
    "dnf, no such repository": (
        "no_repository",
        "Errors during downloading metadata for repository 'allreduce-cuda':\n  - Status code: 404 for http://10.1.2.3/cuda/repodata/"
        "repomd.xml (IP: 10.1.2.3)\nError: Failed to download metadata for repo 'allreduce-cuda': Cannot download repomd.xml: Cannot "
        "download repodata/repomd.xml: All mirrors were tried",
        ["there is no repository at http://10.1.2.3/cuda/repodata/repomd.xml: correct cuda_repository_mirror"],
    ),
    "dnf, damaged metadata": (
        "index_inconsistent",
        "Errors during downloading metadata for repository 'allreduce-cuda':\n  - Downloading successful, but checksum doesn't match. "
        "Calculated: 5e1(sha256)  Expected: 0c2(sha256)",
        ["do not match"],
    ),
    "dnf, no name": (
        "unreachable",
        "Errors during downloading metadata for repository 'epel':\n  - Curl error (6): Couldn't resolve host name for "
        "https://mirrors.fedoraproject.org/metalink?repo=epel-9&arch=x86_64 [Could not resolve host: mirrors.fedoraproject.org]",
        ["https://mirrors.fedoraproject.org/metalink?repo=epel-9&arch=x86_64 cannot be reached", "base_dnf_mirror"],
    ),
    "dnf, time-out": (
        "unreachable",
        "  - Curl error (28): Timeout was reached for https://site.example/repodata/repomd.xml [Connection timeout after 30001 ms]",
        ["https://site.example/repodata/repomd.xml cannot be reached"],
    ),
    "dnf, slow": (
        "unreachable",
        "  - Curl error (28): Timeout was reached for https://site.example/a.rpm [Operation too slow. Less than 1000 bytes/sec "
        "transferred the last 30 seconds]",
        ["https://site.example/a.rpm cannot be reached"],
    ),
    "apt, time-out": (
        "unreachable",
        "W: Failed to fetch http://x.example/dists/jammy/InRelease  Could not connect to x.example:80 (192.0.2.7), connection timed out",
        ["http://x.example/dists/jammy/InRelease cannot be reached", "base_apt_mirror"],
    ),
    "apt, forbidden": (
        "access_denied",
        f"E: Failed to fetch {URL}/InRelease  403  Forbidden [IP: 192.0.2.2 80]\n{UNSIGNED}",
        [f"{URL}/InRelease denies access"],
    ),
    "dnf, not subscribed": (
        "access_denied",
        "Errors during downloading metadata for repository 'rhel-9-for-x86_64-baseos-rpms':\n  - Status code: 403 for "
        "https://cdn.redhat.com/content/dist/rhel9/9/x86_64/baseos/os/repodata/repomd.xml (IP: 192.0.2.5)",
        [
            "https://cdn.redhat.com/content/dist/rhel9/9/x86_64/baseos/os/repodata/repomd.xml denies access",
            "subscription",
        ],
    ),
    "dpkg was interrupted": (
        "interrupted",
        "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. ",
        ["was interrupted", "run site"],
    ),
    "half-installed": (
        "interrupted",
        "E: The package nvidia-dkms-550 needs to be reinstalled, but I can't find an archive for it.",
        ["was interrupted"],
    ),
    "half-configured": (
        "interrupted",
        "dpkg: dependency problems prevent configuration of nvidia-driver-550:\n nvidia-driver-550 depends on nvidia-dkms-550; however:\n"
        "  Package nvidia-dkms-550 is not configured yet.\nE: Sub-process /usr/bin/dpkg returned an error code (1)",
        ["was interrupted"],
    ),
    "half-unpacked": (
        "interrupted",
        "dpkg: error processing package nvidia-dkms-550 (--configure):\n package is in a very bad inconsistent state; you should\n reinstall it",
        ["was interrupted"],
    ),
    "a script, and what depends on it": (
        "script_failed",
        "dpkg: error processing package nvidia-dkms-550 (--configure):\n installed nvidia-dkms-550 package post-installation script subprocess "
        "returned error exit status 10\ndpkg: dependency problems prevent configuration of nvidia-driver-550:",
        ["nvidia-dkms-550"],
    ),
    "a disk that was remounted": (
        "read_only",
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (30: Read-only file system)",
        ["accepts no writes", "kernel's log"],
    ),
    "a server that hangs up": (
        "unreachable",
        f"E: Failed to fetch {URL}/a.deb  Error reading from server. Remote end closed connection [IP: 192.0.2.2 80]",
        [f"{URL}/a.deb cannot be reached"],
    ),
    "TLS that ends early": (
        "unreachable",
        "E: Failed to fetch https://x.example/InRelease  Could not handshake: The TLS connection was non-properly terminated. [IP: 192.0.2.2 443]",
        ["https://x.example/InRelease cannot be reached"],
    ),
    "revoked, sqv": (
        "key_revoked",
        f"W: OpenPGP signature verification failed: {URL} InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: "
        f"Signing key on AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80 is revoked, {UNSIGNED}",
        ["AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80", "withdrawn"],
    ),
    "dnf, two streams": (
        "module_stream",
        "Error: \n Problem: module nvidia-driver:580-open:20250801:x.x86_64 from cuda conflicts with module(nvidia-driver) provided by "
        "nvidia-driver:latest-dkms:20250801:x.x86_64 from cuda",
        ["dnf module reset"],
    ),
    "dnf, another packager's driver": (
        "dependency_conflict",
        "Error: Transaction test error:\n  package nvidia-driver-3:580.1-1.el9.x86_64 conflicts with xorg-x11-drv-nvidia provided by "
        "xorg-x11-drv-nvidia-3:570.1-1.el9.x86_64",
        ["xorg-x11-drv-nvidia"],
    ),
    "a script of a package": (
        "script_failed",
        "dpkg: error processing package nvidia-persistenced (--configure):\n installed nvidia-persistenced package post-installation "
        "script subprocess returned error exit status 1\nE: Sub-process /usr/bin/dpkg returned an error code (1)",
        ["nvidia-persistenced"],
    ),
    "dnf, a script of a package": (
        "script_failed",
        "Error in PREIN scriptlet in rpm package nvidia-persistenced\nError: Transaction failed",
        ["nvidia-persistenced"],
    ),
    "one file, two packages": (
        "file_conflict",
        "dpkg: error processing archive /var/cache/apt/archives/libnvidia-compute-550_550.54.15-0ubuntu1_amd64.deb (--unpack):\n trying to "
        "overwrite '/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1', which is also in package libnvidia-compute-535 535.309.01-0ubuntu1",
        ["/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-compute-535"],
    ),
    "dnf, one file, two packages": (
        "file_conflict",
        "Error: Transaction test error:\n  file /usr/bin/nvidia-smi from install of nvidia-driver-cuda-3:550.54.15-1.el9.x86_64 conflicts "
        "with file from package nvidia-x11-drv-535.1-1.el9.elrepo.x86_64",
        ["/usr/bin/nvidia-smi", "nvidia-x11-drv-535.1-1.el9.elrepo.x86_64"],
    ),
    "rpm's lock": (
        "lock_held",
        "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)",
        ["holds the lock"],
    ),
    "dpkg's lock": (
        "lock_held",
        "dpkg: error: dpkg frontend lock was locked by another process with pid 4711",
        ["holds the lock"],
    ),
    "held by hand": (
        "package_held",
        "The following held packages will be changed:\n  linux-image-generic\nE: Held packages were changed and -y was used without "
        "--allow-change-held-packages.",
        ["apt-mark"],
    ),
    "dnf, kept by a lock of versions": (
        "package_held",
        "Depsolve Error occurred: \n Problem: cannot install the best candidate for the job\n  - package kernel-devel-5.14.0-427.el9.x86_64 "
        "is filtered out by exclude filtering",
        ["kernel-devel-5.14.0-427.el9.x86_64", "versionlock", "excludepkgs"],
    ),
    "dnf, excluded": (
        "package_held",
        "All matches were filtered out by exclude filtering for argument: kernel-devel-5.14.0-427.el9.x86_64",
        ["kernel-devel-5.14.0-427.el9.x86_64", "versionlock"],
    ),
    "dnf, another stream": (
        "module_stream",
        "Depsolve Error occurred: \n Problem: conflicting requests\n  - package nvidia-driver-3:550.54.15-1.el9.x86_64 is filtered out by "
        "modular filtering",
        ["nvidia-driver-3:550.54.15-1.el9.x86_64", "dnf module reset"],
    ),
    "dnf, no package of the stream": (
        "module_stream",
        "All matches were filtered out by modular filtering for argument: cuda-drivers",
        ["cuda-drivers", "dnf module reset"],
    ),
    "dnf, streams that do not fit": (
        "module_stream",
        "Modular dependency problems:\n\n Problem 1: conflicting requests\n  - nothing provides module(platform:el8) needed by module "
        "perl:5.26:8010020191114033549:16b3ab4d.x86_64",
        ["dnf module reset"],
    ),
    "dnf, a stream would switch": (
        "module_stream",
        "The operation would result in switching of module 'nvidia-driver' stream '550-dkms' to stream 'open-dkms'\nError: It is not "
        "possible to switch enabled streams of a module unless explicitly enabled via configuration option module_stream_switch.",
        ["nvidia-driver", "dnf module reset"],
    ),
    "dnf, no such stream": (
        "package_not_found",
        "Error: Problems in request:\nmissing groups or modules: nvidia-driver:550-dkms",
        ["no repository of the host has nvidia-driver:550-dkms"],
    ),
    "apt 3, packages that do not fit": (
        "dependency_conflict",
        "E: Unable to satisfy dependencies. Reached two conflicting assignments:\n   1. nvidia-driver:amd64=550.163.01-2 is selected for "
        "install\n   2. nvidia-driver:amd64 Depends nvidia-kernel-dkms (= 550.163.01-2)\n      but none of the choices are installable",
        ["Depends nvidia-kernel-dkms"],
    ),
    "rpm's database": (
        "database_damaged",
        "error: rpmdb: BDB0113 Thread/process 4711/140 failed: BDB1507 Thread died in Berkeley DB library\nError: Error: rpmdb open failed",
        ["rpm --rebuilddb"],
    ),
    "apt's lists": (
        "database_damaged",
        "E: Encountered a section with no Package: header\nE: Problem with MergeList /var/lib/apt/lists/x_Packages\n"
        "E: The package lists or status file could not be parsed or opened.",
        ["/var/lib/apt/lists"],
    ),
    "dnf, nothing enabled": (
        "no_repository",
        'This system is not registered with an entitlement server.\nError: There are no enabled repositories in "/etc/yum.repos.d".',
        ["no package source is enabled", "register"],
    ),
    "dnf, none of the keys": (
        "unknown_key",
        "Importing GPG key 0xD42D0685:\nImport of key(s) didn't help, wrong key(s)?\nError: GPG check FAILED",
        ["is signed with a key other than"],
    ),
    "dnf, no mirror has it": (
        "unreachable",
        "Failed to download metadata for repo 'epel': Yum repo downloading error: Downloading error(s): repodata/a.xml.gz - Cannot "
        "download, all mirrors were already tried without success",
        ["repository epel cannot be reached"],
    ),
    "apt, without a signature": (
        "package_unsigned",
        "E: There were unauthenticated packages and -y was used without --allow-unauthenticated",
        ["is not signed"],
    ),
    "apt, a directory without an index": (
        "no_repository",
        "E: Failed to fetch file:/srv/cuda/./Packages  File not found - /srv/cuda/./Packages (2: No such file or directory)",
        ["there is no repository at file:/srv/cuda/./Packages"],
    ),
    "the lock of dpkg": (
        "lock_held",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
        ["another package manager holds the lock"],
    ),
    "the lock of dpkg's directory": (
        "lock_held",
        "E: Unable to lock the administration directory (/var/lib/dpkg/), is another process using it?",
        ["another package manager holds the lock"],
    ),
    "dnf5, the lock of rpm": (
        "lock_held",
        "Failed to obtain rpm transaction lock. Another transaction is in progress.",
        ["another package manager holds the lock"],
    ),
    "rpm, a disk that is too small": (
        "disk_full",
        "Error: Transaction test error:\n  installing package cuda-cudart-12-4-12.4.127-1.x86_64 needs 31MB more space on the /usr filesystem\n",
        ["the disk is full (/usr)"],
    ),
    "a quota": ("disk_full", "dpkg: error: failed to write status database: Disk quota exceeded", ["the disk is full"]),
    "dnf, a module without its provider": (
        "dependency_conflict",
        "Problem: package nvidia-driver-3:550.54.15-1.el9.x86_64 from cuda requires nvidia-kmod = 3:550.54.15, but none of the providers "
        "can be installed",
        ["nvidia-driver-3:550.54.15-1.el9.x86_64 from cuda requires nvidia-kmod"],
    ),
    "dnf, two of a kind": (
        "dependency_conflict",
        "Problem: cannot install both kmod-nvidia-open-dkms-3:580.95-1.el9.noarch from cuda and kmod-nvidia-open-dkms-3:570.1-1.el9.noarch "
        "from @System",
        ["the packages conflict", "cannot install both kmod-nvidia-open-dkms"],
    ),
    "dnf, certificates that cannot be read": (
        "untrusted_certificate",
        "Curl error (77): Problem with the SSL CA cert (path? access rights?) for https://m.example/repodata/repomd.xml",
        ["https://m.example/repodata/repomd.xml", "base_ca_certificates"],
    ),
    "too many requests": (
        "server_error",
        f"E: Failed to fetch {URL}/Packages.gz  429  Too Many Requests [IP: 192.0.2.2 443]",
        ["answers 429", "cuda_repository_mirror"],
    ),
    "dnf, too many requests": (
        "server_error",
        "Status code: 429 for https://m.example/repodata/repomd.xml (IP: 192.0.2.2)",
        ["answers 429"],
    ),
    "dnf, a connection that broke off": (
        "unreachable",
        "Curl error (56): Failure when receiving data from the peer for https://m.example/repodata/repomd.xml [Recv failure]",
        ["https://m.example/repodata/repomd.xml cannot be reached"],
    ),
    "packages that do not fit": (
        "dependency_conflict",
        "The following packages have unmet dependencies:\n nvidia-driver-cuda : Depends: libcuda1 (= 550.1) but 535.1 is "
        "to be installed\nE: Unable to correct problems, you have held broken packages.",
        ["nvidia-driver-cuda : Depends: libcuda1", "complete the mirror"],
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_cause_and_remedy_of_a_failure(name):
    cause, output, words = FAILURES[name]
    found = explain({"msg": output})
    assert found["cause"] == cause
    assert found["remedy"] and found["text"].endswith(f": {found['remedy']}")
    for word in words:
        assert word in found["text"]
    assert "\n" not in found["text"]
    assert "{" not in found["text"]


def test_every_cause_is_seen_here():
    assert {cause for cause, _output, _words in FAILURES.values()} == {one.code for one in CAUSES}


@pytest.mark.parametrize(
    "warning",
    [
        "W: Target Packages (Packages) is configured multiple times in /etc/apt/sources.list.d/b.sources:1 and /etc/apt/sources.list.d/c.list:2",
        "W: http://x.example/dists/bullseye/Release.gpg: Policy will reject signature within a year, see --audit for details",
        "Repository 'cuda-rhel9-x86_64' is missing name in configuration, using id.\n"
        "Repository cuda-rhel9-x86_64 is listed more than once in the configuration",
    ],
)
def test_a_warning_about_a_source_that_works_is_no_cause(warning):
    assert explain({"msg": "something", "stderr": warning})["cause"] == "unknown"
    assert explain({"msg": "Could not get lock /var/lib/dpkg/lock", "stderr": warning})["cause"] == "lock_held"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64", "set cuda_repository_key to"),
        ("https://download.docker.com/linux/ubuntu", "correct or remove its entry among the host's package sources"),
    ],
)
def test_the_remedy_is_for_the_source_that_failed(source, words):
    output = (
        f"W: GPG error: {source} InRelease: The following signatures couldn't be verified: NO_PUBKEY 7EA0A9C3F273FCD8"
    )
    found = explain({"msg": output})
    assert f"{source} is signed with a key (7EA0A9C3F273FCD8)" in found["text"]
    assert words in found["remedy"]


def test_a_mirror_of_nvidia_under_any_address_has_the_settings_of_its_role():
    found = explain(
        {"msg": "404  Not Found, E:Failed to fetch http://10.1.2.3/r/InRelease  404"}, None, "http://10.1.2.3/r"
    )
    assert found["remedy"] == "correct cuda_repository_mirror"


def test_the_holder_of_the_lock_is_named():
    result = {"msg": "failed: E: Unable to acquire", "stdout": "Could not get lock /var/lib/dpkg/lock-frontend."}
    assert "process 5, dpkg" in explain(result, {"pid": 5, "program": "dpkg"})["text"]
    assert "holds the lock: let it" in explain(result)["text"]


def test_what_is_unknown_is_shown_as_it_is():
    assert explain({"msg": "something\n  else."}) == {"cause": "unknown", "remedy": "", "text": "something else"}


def test_what_was_explained_is_not_explained_again():
    """Its message may quote the output of which another cause would be made."""
    result = {"msg": "The disk is full: free some space, No space left.", "cause": "lock_held", "remedy": "wait"}
    assert explain(result) == {
        "cause": "lock_held", "remedy": "wait", "text": "The disk is full: free some space, No space left",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["/var/lib/dkms/", "a", "cause: Because ", "Failed to install cpython-x\n"])
def test_whatever_a_node_prints_is_judged_in_seconds(word):
    """What a pattern takes grows with the square of a long word: a megabyte took half an hour."""
    output, begun = word * (400_000 // len(word)), time.monotonic()
    assert explain({"stdout": output})["cause"] == "unknown"
    assert compiler_log({"stdout": output}) is None
    assert explain_uv(output, "uv")["cause"] != "disk_full"
    assert time.monotonic() - begun < 25


def test_the_end_of_a_long_output_tells_the_cause():
    much = "Unpacking a package\n" * 10_000
    assert explain({"stderr": f"{much}E: No space left on device", "stdout": much})["cause"] == "disk_full"
    assert explain_uv(f"{much}error: No space left on device", "uv")["cause"] == "disk_full"
