# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of conda for a host's environments, and which lock answers it."""

import base64

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.conda import conda_environments, conda_problem

PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64"}
BY_CONDA = {"name": "main", "python": "3.12", "interpreter": {"source": "conda", "path": None, "packages": []}}
BY_UV = {"name": "tensorflow", "python": "3.11", "interpreter": {"source": "standalone", "path": None, "packages": []}}


def asked(environment=None, text="", platform=None, channels=("conda-forge",), packages=("zlib", "jpeg"), relock=False):
    environment, platform = environment or BY_CONDA, platform or PLATFORM
    files = [{"item": {"name": "main"}, "content": base64.b64encode(text.encode()).decode()}]
    return conda_environments([environment], platform, files, channels, packages, relock).get("main")


def test_python_and_what_the_user_names():
    found = asked()
    assert (found["specs"], found["lock"], found["former"]) == (["python=3.12", "jpeg", "zlib"], "", "")


def test_others_are_left_to_uv():
    assert conda_environments([BY_UV, {"name": "old", "python": "3.9"}], PLATFORM, [], [], []) == {}


ZLIB = f"https://conda.anaconda.org/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda#sha256:{'a' * 64}"
BODY = f"# platform: linux-64\n@EXPLICIT\n{ZLIB}\n"


def test_a_lock_of_the_same_request_counts():
    text = f"# request: {asked()['digest']}\n{BODY}"
    assert asked(text=text)["lock"] == text
    assert asked(text=text, packages=("jpeg", "zlib"))["lock"] == text
    again = asked(text=text, relock=True)
    assert (again["lock"], again["former"]) == ("", text)


@pytest.mark.parametrize(
    "change",
    [
        {"packages": ()},
        {"channels": ("conda-forge", "bioconda")},
        {"platform": {**PLATFORM, "arch": "aarch64"}},
        {"platform": {**PLATFORM, "version": "13"}},
        {"environment": {**BY_CONDA, "python": "3.11"}},
    ],
)
def test_a_lock_of_another_request_does_not(change):
    text = f"# request: {asked()['digest']}\n{BODY}"
    assert asked(text=text, **change)["lock"] == ""


MINE = "https://conda.example.org/mine"


@pytest.mark.parametrize(
    "line",
    [
        f"{MINE}/noarch/jpeg-3-h_0.tar.bz2#sha256:{'b' * 64}",
        f"{MINE}/linux-64/jpeg-3-h_0.conda#{'b' * 64}",
        f"https://repo.anaconda.com/pkgs/main/linux-64/jpeg-3-h_0.conda#{'b' * 64}",
        f"file:///srv/channel/linux-64/jpeg-3-h_0.conda#{'b' * 64}",
        "# a comment: ünïcode",
        "",
    ],
)
def test_packages_of_the_channels_are_a_lock(line):
    assert conda_problem(f"{BODY}{line}\n", ["conda-forge", f"{MINE}/", "defaults", "/srv/channel"]) is None


DIGITS = "b" * 64


@pytest.mark.parametrize(
    "line",
    [
        f"https://evil.example/conda-forge/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"https://conda.anaconda.org/evil/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"https://conda.example.org/mine.evil/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"https://conda.example.org/mine/../evil/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"https://user@evil.example/https://conda.example.org/mine/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"https://conda.example.org/mine#/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"{MINE}/linux-64/jpeg-3-${{HOME}}_0.conda#{DIGITS}",
        f"{MINE}/linux-64/..%2F..%2Fevil%2Flinux-64%2Fjpeg-3-h_0.conda#{DIGITS}",
        f"{MINE}/%2e%2e%2Fevil/jpeg-3-h_0.conda#{DIGITS}",
        f"{MINE}/%2e%2e/jpeg-3-h_0.conda#{DIGITS}",
        f"{MINE}/linux-64/jpeg-3-h_0.conda",
        f"{MINE}/linux-64/jpeg-3-h_0.conda#md5:{'b' * 32}",
        f"{MINE}/linux-64/jpeg-3-h_0.conda#{DIGITS[:-1]}",
        f" {MINE}/linux-64/jpeg-3-h_0.conda#{DIGITS}",
        f"{MINE}/linux-64/jpeg-3-h_0.conda#{DIGITS} --no-deps",
        f"/tmp/jpeg-3-h_0.conda#{DIGITS}",
        f"{ZLIB}",  # twice
        "jpeg=3",
        "@EXPLICIT\r",
        "# a comment\u2028https://evil.example/x",
        "\0",
    ],
)
def test_anything_else_is_none(line):
    assert conda_problem(f"{BODY}{line}\n", ["conda-forge", MINE]).code == "conda_lock_line"
    text = f"# request: {asked(channels=['conda-forge', MINE])['digest']}\n{BODY}{line}\n"
    found = asked(text=text, channels=["conda-forge", MINE])
    assert (found["lock"], bool(found["refused"])) == ("", True)


@pytest.mark.parametrize("text", ["", "# nothing\n", "@EXPLICIT\n", f"{ZLIB}\n"])
def test_a_lock_names_packages(text):
    assert conda_problem(text, ["conda-forge"]).code == "conda_lock_line"


def test_a_lock_has_an_end():
    assert conda_problem("#" * (5 << 20), ["conda-forge"]).code == "lock_long"
