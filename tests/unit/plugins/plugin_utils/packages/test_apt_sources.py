# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.apt_sources import additional_sources

NONFREE = ["contrib", "non-free"]
KEYRING = "/usr/share/keyrings/archive.gpg"


def entry(suite, components, uri="http://mirror.example/debian", signed_by=KEYRING):
    return {"uri": uri, "suite": suite, "components": components.split(), "signed_by": signed_by}


MAIN_ONLY = [entry("bookworm", "main"), entry("bookworm-updates", "main")]
OURS = [entry("bookworm", "contrib non-free"), entry("bookworm-updates", "contrib non-free")]


def test_the_hosts_own_mirror_suites_and_keyring_are_kept():
    assert additional_sources(MAIN_ONLY, NONFREE) == [
        {
            "uri": "http://mirror.example/debian",
            "suites": ["bookworm", "bookworm-updates"],
            "components": NONFREE,
            "signed_by": KEYRING,
        }
    ]


def test_the_answer_is_the_same_once_it_is_carried_out():
    assert additional_sources(MAIN_ONLY + OURS, NONFREE) == additional_sources(MAIN_ONLY, NONFREE)


def test_only_what_an_entry_lacks_is_added():
    (source,) = additional_sources([entry("bookworm", "main contrib")], NONFREE)
    assert source["components"] == ["non-free"]


def test_mirrors_with_other_keyrings_stay_apart():
    security = entry("bookworm-security", "main", "http://mirror.example/security", None)
    assert [one["signed_by"] for one in additional_sources([*MAIN_ONLY, security], NONFREE)] == [KEYRING, None]
