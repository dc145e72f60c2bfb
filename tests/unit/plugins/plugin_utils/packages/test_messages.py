# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt and dnf really print, seen on hosts whose mirror misbehaves (tests/scenarios/test_60_faults.py)."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.messages import CAUSES, explain

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
            "the signature of the repository does not match its index",
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
        ["no repository of the host has", "nvidia-fabricmanager-550"],
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
