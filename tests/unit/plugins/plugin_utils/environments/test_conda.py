# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of conda for a host's environments, and which lock answers it."""

import base64

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.conda import conda_environments

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


def test_a_lock_of_the_same_request_counts():
    text = f"# request: {asked()['digest']}\n@EXPLICIT\n"
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
    text = f"# request: {asked()['digest']}\n@EXPLICIT\n"
    assert asked(text=text, **change)["lock"] == ""
