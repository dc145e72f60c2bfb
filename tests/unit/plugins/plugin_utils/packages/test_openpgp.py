# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages import openpgp
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.openpgp import list_keys, parse_keys

needs_gpg = pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg")

# The form of gpg 2.2.40: a key with a subkey and somebody else's certification, then one without certifications.
LISTING = """\
pub:-:2048:1:1111111111111111:1649905200:::-:::scSC::::::23::0:
fpr:::::::::AAAAAAAAAAAAAAAAAAAAAAAA1111111111111111:
uid:-::::1649905200::3C259FD42308C082F6470C90C003A25F8141CF16::mirror::::::::::0:
sig:?::1:1111111111111111:1649905200::::[User ID not found]:13x::AAAAAAAAAAAAAAAAAAAAAAAA1111111111111111:::2:
sig:?::1:DB15EB49A25BC89D:1649905300::::[User ID not found]:10x::2F0D6C0ECF93AD0F73EEB84ADB15EB49A25BC89D:::8:
sub:-:2048:1:0123456789ABCDEF:1649905200::::::e::::::23:
fpr:::::::::0000000000000000000000000123456789ABCDEF:
sig:?::1:1111111111111111:1649905200::::[User ID not found]:18x::AAAAAAAAAAAAAAAAAAAAAAAA1111111111111111:::8:
pub:-:4096:1:2222222222222222:1649905200:::-:::scSC::::::23::0:
fpr:::::::::BBBBBBBBBBBBBBBBBBBBBBBB2222222222222222:
"""


def test_primary_keys_by_their_own_certifications():
    found = [(key.fingerprint, key.sha1_bound) for key in parse_keys(LISTING)]
    assert found == [
        ("AAAAAAAAAAAAAAAAAAAAAAAA1111111111111111", True),
        ("BBBBBBBBBBBBBBBBBBBBBBBB2222222222222222", False),
    ]


def test_one_better_certification_is_enough():
    [key, _other] = parse_keys(LISTING.replace(":13x::", ":12x::", 1).replace(":18x::", ":13x::"))
    assert (key.hashes, key.sha1_bound) == ({"2", "8"}, False)


@pytest.fixture
def gpg(tmp_path):
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)

    def call(*arguments):
        command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return call


@needs_gpg
def test_keys_tell_which_hash_binds_them(gpg):
    for digest in ("SHA1", "SHA256"):
        gpg("--cert-digest-algo", digest, "--quick-generate-key", digest, "rsa2048", "sign")
    keys = parse_keys(list_keys("words before it\n" + gpg("--armor", "--export")))
    listed = [line.split(":")[9] for line in gpg("--list-keys", "--with-colons").splitlines() if line[:4] == "fpr:"]
    assert sorted(key.fingerprint for key in keys) == sorted(listed)
    assert sorted(key.sha1_bound for key in keys) == [False, True]


@needs_gpg
def test_every_block_that_rpm_would_find_is_listed(gpg):
    """rpm imports the blocks that it finds by their first words, wherever these stand."""
    blocks = []
    for name in ("mirror", "evil"):
        gpg("--quick-generate-key", name, "rsa2048", "sign")
        blocks.append(gpg("--armor", "--export", name))
    own, evil = blocks
    assert len(parse_keys(list_keys(own))) == 1
    for text in (
        own + evil,
        evil + own,
        f"{own}\n\n{evil}",
        own.replace("\n\n", f"\nComment: x\n\n{evil}", 1),
        own + evil.replace("\n", "\r\n"),
    ):
        try:
            assert len(parse_keys(list_keys(text))) == 2
        except ValueError as error:
            assert "gpg" in str(error)
    inside = own.replace("-----\n", f"-----\nComment: {openpgp.ARMOR}\n", 1)
    with pytest.raises(ValueError, match="a block that gpg does not read"):
        list_keys(inside)


@needs_gpg
def test_files_that_are_not_whole_are_refused(gpg):
    gpg("--quick-generate-key", "mirror", "rsa2048", "sign")
    key = gpg("--armor", "--export")
    middle = len(key) // 2
    for text in (key[:middle], key.replace(key[middle : middle + 4], "!!!!"), key[:middle] + "\udcff" + key[middle:]):
        with pytest.raises(ValueError, match=r"gpg cannot read it \(.+\): fetch it again"):
            list_keys(text)


@pytest.mark.parametrize("text", ["", "<html>404</html>", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n"])
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(ValueError, match="ASCII-armored"):
        list_keys(text)


def test_a_controller_without_gpg_is_told(monkeypatch):
    monkeypatch.setattr(openpgp, "LIST", ["gpg-that-is-nowhere"])
    with pytest.raises(ValueError, match=r"gpg does not start on the controller \(No such file.*install its package"):
        list_keys(openpgp.ARMOR)
