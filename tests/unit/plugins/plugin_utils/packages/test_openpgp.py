# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import hashlib
import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.openpgp import (
    fingerprints,
    packets,
    sha1_bound,
)

BODY = b"\x04" + bytes(range(40))


def armored(data, headers="Version: test\n"):
    encoded = base64.encodebytes(data).decode()
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n{headers}\n{encoded}=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"


def fingerprint(body):
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


@pytest.mark.parametrize(
    "header", [bytes([0x98, len(BODY)]), b"\x99\x00" + bytes([len(BODY)]), bytes([0xC6, len(BODY)])]
)
def test_old_and_new_packet_headers(header):
    assert fingerprints(armored(header + BODY)) == [fingerprint(BODY)]


def test_other_packets_are_passed_over():
    user_id, subkey = b"\xb4\x03abc", b"\xb8" + bytes([len(BODY)]) + BODY
    assert fingerprints(armored(b"\x98" + bytes([len(BODY)]) + BODY + user_id + subkey)) == [fingerprint(BODY)]


def test_headers_of_the_armor_may_be_absent():
    assert fingerprints(armored(b"\x98" + bytes([len(BODY)]) + BODY, headers="")) == [fingerprint(BODY)]


def test_long_packets():
    assert [len(body) for _tag, body in packets(b"\xc6\xc1\x00" + b"\x04" * 448)] == [448]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no key at all", "ASCII-armored"),
        (armored(b"\x98\x50short"), "ends in the middle"),
        (armored(b"\x01\x02"), "no sequence of OpenPGP packets"),
        (armored(b"\x98\x05\x03abcd"), "version 03"),
        (armored(b"\x98\x05\x04abcd").replace("mAUE", "m!UE"), "armor is damaged"),
    ],
)
def test_refusals_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        fingerprints(text)


@pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg")
@pytest.mark.parametrize(("digest", "weak"), [("SHA1", True), ("SHA256", False)])
def test_a_key_tells_which_hash_binds_it_to_its_name(tmp_path, digest, weak):
    def gpg(*arguments):
        command = ["gpg", "--homedir", str(tmp_path), "--batch", "--quiet", "--passphrase", "", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    tmp_path.chmod(0o700)
    gpg("--cert-digest-algo", digest, "--quick-generate-key", "mirror", "rsa2048", "sign")
    key = gpg("--armor", "--export", "mirror")
    assert sha1_bound(key) is weak
    assert len(fingerprints(key)) == 1
