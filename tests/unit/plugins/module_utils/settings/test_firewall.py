# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host gets its rules, keeps or loses them, and is put back: files byte for byte, and what runs."""

import json
import os
import stat
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import nft, ufw
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import firewall, firewall_program
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.firewall_describe import describe
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.firewall_facts import PORT_RANGE, RECORD, RESERVED
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.firewall_plan import NOTHING
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.firewall_helper import HOST, STAT, Host

CLOSED = "inet filter input"
UNIT = "/etc/systemd/system/allreduce-firewall.service"
TABLE = """\
add table inet allreduce
delete table inet allreduce
table inet allreduce {
\tset peers4 {
\t\telements = { %s }
\t}
\tiifname "lo" accept comment "allreduce.gpu %s"
}
"""
PROGRAM = [{"path": firewall.PROGRAM + "/__main__.py", "content": "pass\n"}]
ROLLBACK = {"seconds": 180, "python": "/usr/bin/python3", "files": PROGRAM}
ARMED = "systemd-run --quiet --collect --unit=allreduce-firewall-rollback --on-active=180"


def table(peers, digest):
    return {"path": nft.FILE, "content": TABLE % (", ".join(peers), digest), "mode": "0600"}


def wanted(owner="nftables", peers=("10.0.0.1", "10.0.0.2"), digest="aaaa", values=()):
    if owner == "firewalld":
        entries = "".join(f"<entry>{one}</entry>\n" for one in peers)
        files = [
            {"path": "/etc/firewalld/ipsets/allreduce-peers4.xml", "content": entries, "mode": "0644"},
            {"path": "/etc/firewalld/policies/allreduce.xml", "content": "<policy/>\n", "mode": "0644"},
        ]
    else:
        files = [table(peers, digest), {"path": UNIT, "content": "[Unit]\n", "mode": "0644"}]
    return dict(NOTHING, owner=owner, files=files, values=list(values))


def snapshot(root):
    """{path: (mode, bytes)} of everything on the disk."""
    found = {}
    for place, directories, names in os.walk(str(root)):
        for name in directories + names:
            path = os.path.join(place, name)
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            found[path] = (mode, None if name in directories else Path(path).read_bytes())
    return found


@pytest.fixture(params=["nftables", "ufw", "firewalld"])
def owner(request):
    return request.param


@pytest.fixture
def host(tmp_path, owner):
    return Host(tree(tmp_path, HOST), owner, [CLOSED])


def settle(host, what, check=False, rollback=None):
    answer = firewall.settle(host.machine(), what, rollback, check)
    assert answer["problems"] == [], answer["problems"]
    return answer["changed"]


def test_check_mode_predicts_and_changes_nothing(host, owner, tmp_path):
    before = snapshot(tmp_path), host.live()
    answer = firewall.settle(host.machine(), wanted(owner), ROLLBACK, True)
    assert answer["changed"] and (snapshot(tmp_path), host.live()) == before
    assert not [one for one in host.ran if one.split()[0] == "systemd-run"]
    shown = {one["before_header"]: one["after"] for one in answer["diff"]}
    assert shown[wanted(owner)["files"][0]["path"]] == wanted(owner)["files"][0]["content"]


def test_apply_again_and_back(host, owner, tmp_path):
    before = snapshot(tmp_path), host.live()
    assert settle(host, wanted(owner))
    assert (host.live()[0] is None) == (owner == "firewalld")
    assert host.doors[CLOSED] == (owner != "firewalld")
    assert (ufw.MATCH in (host.ufw_loaded or "")) == (owner == "ufw")
    assert bool(host.firewalld_loaded) == (owner == "firewalld")
    now = snapshot(tmp_path), host.live()
    assert not settle(host, wanted(owner)) and not settle(host, wanted(owner), check=True)
    assert (snapshot(tmp_path), host.live()) == now
    assert settle(host, NOTHING, check=True) and (snapshot(tmp_path), host.live()) == now
    assert settle(host, NOTHING)
    assert (snapshot(tmp_path), host.live()) == before
    assert not settle(host, NOTHING)


@pytest.mark.parametrize("there", [True, False], ids=["directory was there", "no directory"])
def test_only_directories_that_were_made_are_removed(tmp_path, there):
    host = Host(tree(tmp_path, HOST))
    place = tmp_path / "var/lib/allreduce"
    if there:
        place.mkdir(parents=True)
    before = snapshot(tmp_path)
    for what in (wanted(), NOTHING):
        assert settle(host, what, rollback=ROLLBACK)
        assert firewall.confirm(host.machine()) == []
    assert snapshot(tmp_path) == before


def test_the_record_is_for_root_alone(host, owner):
    settle(host, wanted(owner))
    assert stat.S_IMODE(os.stat(host.tree.path(RECORD)).st_mode) == 0o600


def test_a_node_that_left_is_removed(host, owner):
    settle(host, wanted(owner))
    assert settle(host, wanted(owner, ["10.0.0.1"], "bbbb"))
    assert not settle(host, wanted(owner, ["10.0.0.1"], "bbbb"))
    loaded = host.text or "".join(host.firewalld_loaded.values())
    assert "10.0.0.1" in loaded and "10.0.0.2" not in loaded
    assert host.doors[CLOSED] <= 1


def test_what_somebody_has_flushed_is_loaded_again(host, owner):
    settle(host, wanted(owner))
    now = host.live()
    host.text, host.firewalld_loaded, host.doors = None, {}, {CLOSED: 0}
    assert settle(host, wanted(owner), check=True)
    assert settle(host, wanted(owner)) and host.live() == now


def test_lines_of_others_in_ufw_s_files_stay(tmp_path):
    host = Host(tree(tmp_path, HOST), "ufw")
    settle(host, wanted("ufw"))
    place = tmp_path / "etc/ufw/before.rules"
    place.write_text(place.read_text().replace("COMMIT", "-A ufw-before-input -p 112 -j ACCEPT\nCOMMIT"))
    settle(host, NOTHING)
    expected = HOST["/etc/ufw/before.rules"].replace("COMMIT", "-A ufw-before-input -p 112 -j ACCEPT\nCOMMIT")
    assert place.read_text() == expected


def test_another_owner_takes_over(tmp_path):
    host = Host(tree(tmp_path, HOST), "ufw")
    before = snapshot(tmp_path)
    settle(host, wanted("ufw"))
    settle(host, wanted("nftables"))
    assert (tmp_path / "etc/ufw/before.rules").read_text() == HOST["/etc/ufw/before.rules"]
    settle(host, NOTHING)
    assert snapshot(tmp_path) == before


def test_values_of_strict_mode(tmp_path):
    host = Host(tree(tmp_path, HOST))
    strict = wanted(values=[{"path": PORT_RANGE, "value": "50000 50999"}, {"path": "/proc/sys/net/none", "value": "1"}])
    assert settle(host, strict) and not settle(host, strict)
    place = tmp_path / PORT_RANGE.lstrip("/")
    assert place.read_text() == "50000 50999"
    assert settle(host, wanted())
    assert place.read_text() == "32768 60999"


def test_an_empty_value_is_put_back_by_a_line(tmp_path):
    """The kernel takes a write of no bytes for none."""
    host = Host(tree(tmp_path, {**HOST, RESERVED: "\n"}))
    settle(host, wanted(values=[{"path": RESERVED, "value": "29400,29500"}]))
    settle(host, wanted())
    assert (tmp_path / RESERVED.lstrip("/")).read_bytes() == b"\n"


def killed_at(host, command, what):
    """Settle, and end as a program is about to run."""

    def run(arguments, data=None):
        if " ".join(arguments).startswith(command):
            raise SystemExit
        return host.run(arguments, data)

    machine = host.machine()
    machine.run = run
    with pytest.raises(SystemExit):
        firewall.settle(machine, what)


def of_another_release(owner):
    files = [
        dict(one, content="# new\n" + one["content"]) if one["path"] == UNIT else one for one in wanted(owner)["files"]
    ]
    return dict(wanted(owner), files=files)


def with_other_ports(owner):
    *rest, last = wanted(owner)["files"]
    return dict(wanted(owner), files=[*rest, dict(last, content=last["content"] + "<!-- ports -->\n")])


@pytest.mark.parametrize(
    "owner, command, changes",
    [
        ("nftables", "systemctl daemon-reload", [wanted, of_another_release, lambda owner: NOTHING]),
        ("nftables", "systemctl start", [wanted, of_another_release]),
        ("ufw", "ufw reload", [wanted, lambda owner: NOTHING]),
        ("firewalld", "firewall-cmd --reload", [wanted, with_other_ports, lambda owner: NOTHING]),
    ],
    indirect=["owner"],
)
def test_a_run_that_was_killed_goes_on(host, owner, command, changes, tmp_path):
    """Files are as wanted then, and not all that is missing shows in what runs: the ports of a policy, or a unit."""
    before = snapshot(tmp_path), host.live()
    for what in changes:
        killed_at(host, command, what(owner))
        assert settle(host, what(owner), check=True)
        del host.ran[:]
        assert settle(host, what(owner)) and [one for one in host.ran if one.startswith(command)]
        assert not settle(host, what(owner))
    settle(host, NOTHING)
    assert (snapshot(tmp_path), host.live()) == before


# The way back


def test_a_change_is_armed_and_kept_once_it_is_confirmed(host, owner):
    assert settle(host, wanted(owner), rollback=ROLLBACK)
    assert [one for one in host.ran if one.startswith(ARMED)]
    assert host.tree.exists(firewall.SNAPSHOT) and host.tree.exists(PROGRAM[0]["path"])
    now = host.live()
    assert firewall.confirm(host.machine()) == []
    assert not host.tree.exists(firewall.ROLLBACK) and host.live() == now
    assert "systemctl stop allreduce-firewall-rollback.timer" in host.ran
    assert not settle(host, wanted(owner), rollback=ROLLBACK)
    (problem,) = firewall.confirm(host.machine())
    assert problem["code"] == "rolled_back" and describe(problem).startswith("No one confirmed the change in time")


def restore(host):
    """What the timer starts."""
    return firewall_program.main(["restore"], host.tree, host.run)


def test_the_timer_goes_back(host, owner, tmp_path):
    before = snapshot(tmp_path), host.live()
    settle(host, wanted(owner), rollback=ROLLBACK)
    assert restore(host) is None
    assert host.live() == before[1]
    after = {path: one for path, one in snapshot(tmp_path).items() if one[1] is not None}
    assert after == {path: one for path, one in before[0].items() if one[1] is not None}
    assert restore(host) is None


def test_the_timer_goes_back_to_the_rules_of_the_run_before(host, owner):
    settle(host, wanted(owner))
    now = host.live(), host.read(RECORD)
    settle(host, wanted(owner, ["10.0.0.1"], "bbbb"), rollback=ROLLBACK)
    assert host.live() != now[0]
    assert restore(host) is None and (host.live(), host.read(RECORD)) == now


def test_a_change_that_nobody_confirmed_is_confirmed_by_the_next_run(host, owner):
    before = host.live()
    settle(host, wanted(owner), rollback=ROLLBACK)
    assert settle(host, wanted(owner), rollback=ROLLBACK)
    assert len([one for one in host.ran if one.startswith(ARMED)]) == 2
    assert restore(host) is None and host.live() == before


def test_a_removal_that_nobody_confirmed_is_confirmed_by_the_next_run(host, owner, tmp_path):
    """By its record, the role sees that there is something to do."""
    before = snapshot(tmp_path), host.live()
    settle(host, wanted(owner))
    settle(host, NOTHING, rollback=ROLLBACK)
    assert host.tree.exists(RECORD)
    assert settle(host, NOTHING, rollback=ROLLBACK) and host.tree.exists(RECORD)
    assert firewall.confirm(host.machine()) == []
    assert (snapshot(tmp_path), host.live()) == before and not settle(host, NOTHING, rollback=ROLLBACK)


def test_a_change_without_a_timer_ends_one_that_still_runs(host, owner):
    settle(host, wanted(owner), rollback=ROLLBACK)
    now = host.live()
    assert settle(host, wanted(owner)) and not settle(host, wanted(owner))
    assert not host.tree.exists(firewall.ROLLBACK) and "systemctl stop allreduce-firewall-rollback.timer" in host.ran
    assert restore(host) is None and host.live() == now


def test_a_second_change_before_the_confirmation_goes_back_to_the_first_state(host, owner):
    before = host.live()
    settle(host, wanted(owner), rollback=ROLLBACK)
    settle(host, wanted(owner, ["10.0.0.1"], "bbbb"), rollback=ROLLBACK)
    assert restore(host) is None and host.live() == before


def test_a_reboot_before_the_confirmation_goes_back(tmp_path):
    host = Host(tree(tmp_path, HOST))
    settle(host, wanted(digest="aaaa"))
    settle(host, wanted(digest="bbbb"), rollback=ROLLBACK)
    assert firewall_program.main(["load"], host.tree, host.run) is None  # what the unit does when it is started
    assert nft.digest_of(host.text) == "bbbb" and host.tree.exists(firewall.SNAPSHOT)
    (tmp_path / "proc/1/stat").write_text(STAT % 99)
    host.text = None
    assert firewall_program.main(["load"], host.tree, host.run) is None
    assert nft.digest_of(host.text) == "aaaa" and not host.tree.exists(firewall.SNAPSHOT)


@pytest.mark.parametrize("owner", ["nftables", "ufw"], indirect=True)
@pytest.mark.parametrize(
    "changes",
    [
        [wanted],
        [wanted, of_another_release],
        [wanted, lambda owner: NOTHING],
        [wanted, lambda owner: dict(NOTHING, disabled=True)],
    ],
    ids=["the unit is new", "the unit changes", "the unit goes", "the owner stops"],
)
def test_a_boot_that_goes_back_waits_for_no_service(host, owner, tmp_path, changes):
    *done, change = changes
    for one in done:
        settle(host, one(owner))
    before = host.live()
    settle(host, change(owner), rollback=ROLLBACK)
    (tmp_path / "proc/1/stat").write_text(STAT % 99)
    host.booting = True
    assert firewall_program.main(["load"], host.tree, host.run) is None
    assert host.live() == before and not host.tree.exists(firewall.SNAPSHOT)


def test_without_systemd_run_nothing_changes(host, owner, tmp_path):
    before = snapshot(tmp_path), host.live()
    host.fails = ["systemd-run"]
    answer = firewall.settle(host.machine(), wanted(owner), ROLLBACK)
    assert [one["code"] for one in answer["problems"]] == ["command_failed"]
    assert host.live() == before[1] and not host.tree.exists(firewall.ROLLBACK) and not host.tree.exists(RECORD)


@pytest.mark.parametrize("fails", ["nft -f /", "systemctl daemon-reload", "ufw reload", "firewall-cmd --reload"])
def test_what_fails_is_taken_back_at_once(host, owner, tmp_path, fails):
    before = {path: one for path, one in snapshot(tmp_path).items() if one[1] is not None}
    live = host.live()
    host.fails = [fails.replace("/", str(tmp_path))]
    answer = firewall.settle(host.machine(), wanted(owner), ROLLBACK)
    if answer["problems"]:
        assert describe(answer["problems"][0]).endswith("The previous rules were restored.")
        assert {path: one for path, one in snapshot(tmp_path).items() if one[1] is not None} == before
        host.fails = []
        restore(host)
        assert host.text == live[0] and not host.tree.exists(firewall.ROLLBACK)
    else:
        applies = {"nft": owner != "firewalld", "systemctl": owner != "firewalld", "ufw": owner == "ufw", "firewall-cmd": owner == "firewalld"}  # fmt: skip
        assert not applies[fails.split()[0]]


# The way of old instructions

SELINUX = "# x\nSELINUX=enforcing\nSELINUXTYPE=targeted\n"


@pytest.mark.parametrize("owner", ["ufw", "firewalld"], indirect=True)
def test_all_off_and_back(tmp_path, owner):
    files = {**HOST, firewall.SELINUX: SELINUX, firewall.ENFORCE: "1"}
    host = Host(tree(tmp_path, files), owner)
    before = snapshot(tmp_path), host.services[owner].copy()
    off = dict(NOTHING, disabled=True)
    assert settle(host, wanted(owner)) and settle(host, off) and not settle(host, off)
    assert host.services[owner] == {"enabled": False, "active": False} and not host.text
    assert (tmp_path / "etc/selinux/config").read_text() == SELINUX.replace("=enforcing", "=permissive")
    assert (tmp_path / "sys/fs/selinux/enforce").read_text() == "0"
    assert settle(host, NOTHING)
    assert (snapshot(tmp_path), host.services[owner]) == before


def test_a_record_of_somebody_else_is_refused(tmp_path):
    host = Host(tree(tmp_path, {**HOST, RECORD: json.dumps({"format": 9})}))
    with pytest.raises(ValueError, match="has format 9; this release reads 1"):
        firewall.settle(host.machine(), wanted())


@pytest.mark.parametrize("words", [[], ["--help"], ["load", "now"]])
def test_the_program_says_how_it_is_used(words):
    assert firewall_program.main(words) == "usage: firewall load|restore"


def test_the_program_says_what_failed(tmp_path):
    host = Host(tree(tmp_path, HOST))
    settle(host, wanted())
    host.fails = ["nft -f"]
    assert firewall_program.main(["load"], host.tree, host.run).startswith("nft -f ")


def test_programs_that_are_not_there_end_with_127():
    assert firewall_program.run(["/nonexistent/program"])[0] == 127
    assert firewall_program.run(["cat"], "text") == (0, "text")
