# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup renders what ansible.builtin.template renders, without a copy of the variables."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

from ansible_collections.allreduce.gpu.plugins.lookup._template import _Shared

from tests.support.command import CHECKOUT

TEXT = "{% for name in names %}\n{{ name }} on {{ place.rack }}\n{% endfor %}\n# {{ template_path | basename }}\n\n"


def test_it_renders_as_ansible_does_with_the_same_options(tmp_path):
    path = tmp_path / "text.j2"
    path.write_text(TEXT, encoding="utf-8")
    variables = {"names": ["gpu-1", "gpu-2"], "place": {"rack": "{{ 'r' ~ 1 }}"}, "more": {"names": ["gpu-9"]}}
    asked = [
        f"lookup('{name}', '{path}'{options})"
        for options in ("", ", template_vars=more")
        for name in ("allreduce.gpu._template", "ansible.builtin.template")
    ]
    command = [
        sys.executable,
        "-m",
        "ansible",
        "adhoc",
        "localhost",
        "-m",
        "ansible.builtin.debug",
        "-e",
        json.dumps(variables),
    ]
    arguments = json.dumps({"msg": "{{ [" + ", ".join(asked) + "] | to_json }}"})
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
    }
    done = subprocess.run([*command, "-a", arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs, our_other, their_other = json.loads(json.loads(done.stdout.partition("=> ")[2])["msg"])
    assert ours.splitlines() == ["gpu-1 on r1", "gpu-2 on r1", "# text.j2", ""]
    assert ours == theirs
    assert our_other == their_other
    assert our_other.startswith("gpu-9 on r1\n#")


def test_variables_are_shared_and_not_changed():
    facts = {"gpus": []}
    shared = _Shared({"facts": facts})
    own = copy.deepcopy(shared)
    own["template_path"] = "text.j2"
    assert own["facts"] is facts
    assert list(shared) == ["facts"]
