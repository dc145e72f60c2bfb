# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.missing import missing, pins

INSTALLED = {
    "nvidia-smi": "535.309.01-0+deb12u1",
    "libnvidia-ml1": "535.309.01-0+deb12u1",
    "nvidia-persistenced": "535.171.04-1~deb12u1",
    "nvidia-container-toolkit": "1.18.0-1",
    "bash": "5.2",
}


@pytest.mark.parametrize(
    ("wanted", "specs"),
    [
        ([], []),
        (["bash"], []),
        (["chrony"], ["chrony"]),
        ([{"name": "nvidia-smi", "version": "535.*"}], []),
        ([{"name": "nvidia-smi", "version": "535.309.01-0+deb12u1"}], []),
        ([{"name": "nvidia-smi", "version": "550.*"}], ["nvidia-smi=550.*"]),
        ([{"name": "nvidia-smi", "version": None}], []),
        ([{"name": "libcuda1", "version": None}], ["libcuda1"]),
    ],
)
def test_missing(wanted, specs):
    assert missing(wanted, INSTALLED) == specs


def test_pins_group_the_named_packages_by_exact_version():
    assert pins(["nvidia-*", "libnvidia-*"], INSTALLED, ["nvidia-container-*"]) == [
        {"version": "535.171.04-1~deb12u1", "packages": ["nvidia-persistenced"]},
        {"version": "535.309.01-0+deb12u1", "packages": ["libnvidia-ml1", "nvidia-smi"]},
    ]


def test_no_pins_where_nothing_is_installed():
    assert pins(["nvidia-*"], {}) == []


def test_dnf_takes_versions_after_a_dash():
    wanted = [{"name": "nvidia-driver-cuda", "version": "3:595.91.07-*"}, {"name": "dkms", "version": None}]
    assert missing(wanted, {}, "-") == ["nvidia-driver-cuda-3:595.91.07-*", "dkms"]
    assert missing(wanted, {"nvidia-driver-cuda": "3:595.91.07-1.el9", "dkms": "3.1"}, "-") == []
