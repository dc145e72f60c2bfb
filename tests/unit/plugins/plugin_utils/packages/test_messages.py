# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt and dnf really print, seen on hosts whose mirror misbehaves (tests/scenarios/test_60_faults.py)."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.messages import explain

URL = "http://mirror.example.org/cuda/repos/ubuntu2204/x86_64"
UNSIGNED = f"E:The repository '{URL}  InRelease' is not signed."
FAILURES = {
    "503": (
        f"E:Failed to fetch {URL}/InRelease  503  Service Unavailable [IP: 192.0.2.2 80], {UNSIGNED}",
        ["answers 503", "cuda_repository_mirror"],
    ),
    "404": (
        f"W:See apt-secure(8)., E:The repository '{URL}  Release' does not have a Release file.",
        [f"there is no repository at {URL}:", "correct cuda_repository_mirror"],
    ),
    "404 of what was there": (
        f"E:The repository '{URL}  Release' no longer has a Release file.",
        [f"there is no repository at {URL}:"],
    ),
    "truncated": (
        f"E:Failed to fetch {URL}/Packages.gz  File has unexpected size (114154 != 228309). Mirror sync in progress?",
        ["do not fit together", "repeat its synchronisation"],
    ),
    "bad signature": (
        f"W:GPG error: {URL}  InRelease: The following signatures were invalid: BADSIG 952E0B123797B248 a, {UNSIGNED}",
        ["signature", "does not match its index"],
    ),
    "unknown key": (
        "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 71860AA6D5C0E11A, "
        + UNSIGNED,
        ["another key (71860AA6D5C0E11A)", "cuda_repository_key_fingerprint"],
    ),
    "dnf, bad signature or unknown key": (
        "Error: Failed to download metadata for repo 'cuda': repomd.xml GPG signature verification error: Bad GPG signature",
        ["the signature of the repository does not match its index", "another key", "cuda_repository_key_fingerprint"],
    ),
    "expired": (
        f"E:Release file for {URL}/InRelease is expired (invalid since 30d 0h 4min 1s).",
        [f"the index of {URL}", "has expired", "clock"],
    ),
    "vanished": (
        f"'/usr/bin/apt-get -y' failed: E: Failed to fetch {URL}/libnvidia-compute-550_550.54.15-0ubuntu1_amd64.deb  404  Not Found",
        [
            "libnvidia-compute-550_550.54.15-0ubuntu1_amd64.deb is in the repository's index and no longer in the repository"
        ],
    ),
    "dnf waited for a lock": (
        "non-zero return code\nWaiting for process with pid 4711 to finish.",
        ["another package manager holds the lock: let it finish"],
    ),
    "dnf has no room for downloads": (
        "Error: Insufficient space in download directory /var/cache/dnf/cuda-1/packages\n    * free   0.0 B\n    * needed 1.2 G",
        ["the disk is full (/var/cache/dnf/cuda-1/packages): make room"],
    ),
    "not in the repository": (
        "no package matching 'nvidia-fabricmanager-550=1' is available",
        ["no repository of the host has", "nvidia-fabricmanager-550"],
    ),
    "not in the repository with that version": (
        "no available installation candidate for nvidia-fabricmanager-535=535.309.01-*",
        [
            "no repository of the host has nvidia-fabricmanager-535 535.309.01-*, which the plan names",
            "complete the mirror",
        ],
    ),
    "full disk": (
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        ["the disk is full (/var/cache/apt/archives/)"],
    ),
    "DKMS": (
        "Consult /var/lib/dkms/nvidia/550.54.15/build/make.log for more information.",
        ["a kernel module could not be built: see /var/lib/dkms/nvidia/550.54.15/build/make.log"],
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_the_sentence_says_what_to_change(name):
    text, words = FAILURES[name]
    said = explain({"msg": text})
    for word in words:
        assert word in said
    assert "\n" not in said


def test_the_holder_of_the_lock_is_named():
    result = {"msg": "failed: E: Unable to acquire", "stdout": "Could not get lock /var/lib/dpkg/lock-frontend."}
    assert "process 5, dpkg" in explain(result, {"pid": 5, "program": "dpkg"})
    assert "holds the lock: let it" in explain(result)


def test_what_is_unknown_is_shown_as_it_is():
    assert explain({"msg": "something\n  else"}) == "something else"
