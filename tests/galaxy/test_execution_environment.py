# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-builder makes the context of an execution environment from the archive, and reads what the collection needs in it.

Nothing is pulled: what the image would do with the context is asked of the programs that lie in it.
"""

import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from .conftest import CHECKOUT, run

BUILDER = Path(sys.executable).with_name("ansible-builder")
ARCHIVE = "allreduce-gpu-0.1.0.tar.gz"


@pytest.fixture(scope="module")
def context(released, tmp_path_factory):
    """The context of an execution environment with this collection."""
    place = tmp_path_factory.mktemp("execution_environment")
    definition = {
        "version": 3,
        "images": {"base_image": {"name": "quay.io/fedora/fedora:latest"}},
        "dependencies": {
            "ansible_core": {"package_pip": "ansible-core==2.19.*"},
            "ansible_runner": {"package_pip": "ansible-runner"},
            "galaxy": {"collections": [{"name": ARCHIVE, "type": "file"}]},
        },
        "additional_build_files": [{"src": str(released.files[ARCHIVE]), "dest": "."}],
    }
    (place / "execution-environment.yml").write_text(yaml.safe_dump(definition), encoding="utf-8")
    run(BUILDER, "create", cwd=place, env=released.env)
    return place / "context"


def test_the_context_has_the_archive_and_how_to_install_it(context):
    build = context / "_build"
    assert (build / ARCHIVE).is_file()
    assert yaml.safe_load((build / "requirements.yml").read_text(encoding="utf-8")) == {
        "collections": [{"name": ARCHIVE, "type": "file"}]
    }
    assert "ansible-galaxy collection install" in (context / "Containerfile").read_text(encoding="utf-8")


def test_what_the_image_will_install(context, released, tmp_path):
    """The context's own program reads it, as it does in the image, from the collection as it was installed there."""
    install = ("galaxy", "collection", "install", "--offline", "--force", "-p", tmp_path, context / "_build" / ARCHIVE)
    run(sys.executable, "-m", "ansible", *install, cwd=tmp_path, env=released.env)
    program = context / "_build" / "scripts" / "introspect.py"
    names = [f"--write-{kind}={tmp_path / kind}" for kind in ("pip", "bindep")]
    found = run(sys.executable, program, "introspect", *names, tmp_path, cwd=tmp_path, env=released.env)
    assert "non-PEP508" not in found.stdout + found.stderr

    wanted = (CHECKOUT / "requirements.in").read_text(encoding="utf-8").splitlines()
    wanted = {Requirement(line.partition("#")[0]).name for line in wanted if not line.startswith("#")}
    lines = (tmp_path / "pip").read_text(encoding="utf-8").splitlines()
    assert {Requirement(line.partition("#")[0]).name for line in lines} == wanted - {"ansible-core"}
    bindep = (tmp_path / "bindep").read_text(encoding="utf-8")
    assert {line.split()[0] for line in bindep.splitlines()} == {
        line.split()[0] for line in (CHECKOUT / "bindep.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"
    }
