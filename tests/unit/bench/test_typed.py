# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands stand for what a module did."""

import subprocess

import pytest

from tests.bench import typed

FILES = {"/etc/hosts": {"content": "127.0.0.1 localhost\n"}, "/opt/lib.py": {"content": "pass\n"}}
INSTALL = f"{typed.APT} install --allow-downgrades"


def action(module, changed=True, asks=False, environment=None, **arguments):
    return {
        "module": module, "task": "Do it", "arguments": arguments, "changed": changed, "asks": asks,
        "environment": environment or {},
    }  # fmt: skip


def typed_lines(*actions):
    return typed.script(actions, FILES).splitlines()[1:]


@pytest.mark.parametrize(
    ("module", "arguments", "expected"),
    [
        ("ansible.builtin.apt", {"name": ["a", "b=1"]}, ["apt-get -q update", f"{INSTALL} a b=1"]),
        (
            "ansible.builtin.apt",
            {"name": ["a"], "install_recommends": False},
            ["apt-get -q update", f"{INSTALL} --no-install-recommends a"],
        ),
        ("ansible.builtin.apt", {"name": ["a"], "state": "absent"}, [f"{typed.APT} purge a"]),
        ("ansible.builtin.apt", {"update_cache": True}, []),
        (
            "allreduce.gpu.config_files",
            {"files": [
                {"path": "/etc/a", "state": "directory", "mode": "0700", "owner": "u", "group": "g"},
                {"path": "/etc/a/b c", "content": "x\n", "mode": "0600"},
                {"path": "/etc/old", "state": "absent"},
            ]},
            [
                "install -d -m 0700 -o u -g g /etc/a",
                "install -D -m 0600 /dev/null '/etc/a/b c'", "cat > '/etc/a/b c' <<'END-OF-FILE'", "x", "END-OF-FILE",
                "rm -f /etc/old",
            ],
        ),
        (
            "ansible.legacy.copy",
            {"src": "/tmp/source", "dest": "/opt/lib.py", "mode": "0644", "owner": "root"},
            ["install -D -m 0644 /dev/null /opt/lib.py", "cat > /opt/lib.py <<'END-OF-FILE'", "pass", "END-OF-FILE"],
        ),
        (
            "ansible.builtin.blockinfile",
            {"path": "/etc/hosts", "block": "10.0.0.1 a"},
            ["cat > /etc/hosts <<'END-OF-FILE'", "127.0.0.1 localhost", "END-OF-FILE"],
        ),
        (
            "ansible.legacy.command",
            {"argv": ["pip", "install", "a b"], "stdin": "lines\n", "chdir": "/srv"},
            ["(cd /srv && pip install 'a b') <<'END-OF-FILE'", "lines", "END-OF-FILE"],
        ),
        ("ansible.legacy.command", {"argv": ["dkms", "install"]}, ["dkms install </dev/null"]),
        ("ansible.builtin.command", {"argv": ["apt-cache", "madison", "a"]}, []),
        (
            "ansible.builtin.systemd_service",
            {"name": "chrony", "enabled": True, "state": "started", "daemon_reload": True},
            ["systemctl daemon-reload", "systemctl enable chrony", "systemctl start chrony"],
        ),
        ("ansible.builtin.group", {"name": "trainer", "gid": None}, ["groupadd trainer"]),
        ("allreduce.gpu.gpu_settings", {"declaration": [{"persistence_mode": True}]}, ["nvidia-smi -pm 1"]),
        ("allreduce.gpu.package_hold", {"packages": ["nvidia*"], "state": "released"}, []),
        ("allreduce.gpu.node_state", {}, []),
    ],
)  # fmt: skip
def test_commands_of_a_module(module, arguments, expected):
    assert typed_lines(action(module, **arguments)) == expected
    assert typed_lines(action(module, changed=False, **arguments)) == []
    assert typed_lines(action(module, asks=True, **arguments)) == []


def test_a_module_that_nobody_could_type_is_an_error():
    with pytest.raises(ValueError, match=r"ansible\.builtin\.iptables .task 'Do it'. has no typed equivalent"):
        typed_lines(action("ansible.builtin.iptables", changed=False))


def test_lists_are_read_once_and_again_when_a_source_changed():
    install = action("ansible.builtin.apt", name=["a"])
    source = action("allreduce.gpu.config_files", files=[{"path": "/etc/apt/sources.list.d/a.sources", "content": "x"}])
    other = action("allreduce.gpu.config_files", files=[{"path": "/etc/apt/preferences.d/a", "content": "x"}])
    assert typed_lines(install, install, other, install).count("apt-get -q update") == 1
    assert typed_lines(install, source, install).count("apt-get -q update") == 2


def test_an_environment_is_solved_as_it_is_installed():
    uv = "/opt/uv/bin/uv"
    solve = action(
        "command",
        asks=True,
        argv=[uv, "pip", "compile", "pyproject.toml", "--generate-hashes"],
        chdir="/var/solve/main",
    )
    lock = action("command", argv=[uv, "pip", "sync", "-", "--require-hashes", "--no-index"], stdin="torch==2\n",
                  environment={"UV_CACHE_DIR": "/var/cache"})  # fmt: skip
    assert typed_lines(solve, lock) == [
        f"(cd /var/solve/main && env UV_CACHE_DIR=/var/cache {uv} pip install --no-index -r pyproject.toml) </dev/null"
    ]
    # Where another host solved it, the lock is what was typed.
    assert (
        typed_lines(lock)[0]
        == f"env UV_CACHE_DIR=/var/cache {uv} pip sync - --require-hashes --no-index <<'END-OF-FILE'"
    )


def test_a_user_with_a_key():
    user = action("ansible.builtin.user", name="t", home="/home/t", group="t", shell="/bin/bash")
    assert typed_lines(user) == ["useradd -m -d /home/t -g t -s /bin/bash -p '*' t"]
    keys = action("allreduce.gpu.ssh_keys", user="t", directory="/home/t/.ssh", kind="ed25519", comment="t@n")
    line = typed_lines(keys)[0]
    assert (
        line.startswith("runuser -u t -- ") and "ssh-keygen -q -t ed25519" in line and "/home/t/.ssh/id_ed25519" in line
    )


def test_files_whose_content_must_be_read():
    done = [
        action("ansible.legacy.copy", dest="/opt/lib.py"),
        action("ansible.builtin.replace", path="/etc/hosts"),
        action("ansible.builtin.replace", changed=False, path="/etc/other"),
        action("allreduce.gpu.config_files", files=[{"path": "/etc/a", "content": "x"}]),
    ]
    assert typed.paths(done) == ["/etc/hosts", "/opt/lib.py"]


def test_a_script_writes_what_it_was_told(tmp_path):
    content = "a $HOME `b` 'c'\n\\d\n"
    file = {"path": str(tmp_path / "new" / "file"), "content": content, "mode": "0600"}
    text = typed.script([action("allreduce.gpu.config_files", files=[file])], {})
    subprocess.run(["sh"], input=text, text=True, check=True)
    assert (tmp_path / "new" / "file").read_text() == content
    assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600
