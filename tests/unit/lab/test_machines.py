# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emulated machines: what QEMU is told, what a machine is told when it boots, and what is known of one whose power is off."""

import ipaddress
import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.lab import hosts, paths, podman
from tests.lab.machines import console, disk, guests, qemu
from tests.lab.progress import LabError

SUBNET = ipaddress.ip_network("10.203.7.0/24")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Machines below a directory of the test."""
    monkeypatch.setattr(qemu, "PLACE", tmp_path / "machines")
    monkeypatch.setattr(qemu, "FIRMWARE", tmp_path)
    for _code, variables in qemu.FIRMWARES.values():
        (tmp_path / variables).write_text("variables")
    return tmp_path


@pytest.fixture
def without_images(monkeypatch):
    monkeypatch.setattr(qemu, "_lay_over", lambda *paths: None)


def machine(name="m-1", **more):
    return qemu.Machine(name, more.pop("lab", "m"), "10.203.7.11", "ssh-ed25519 AAAA\n", **more)


def test_what_was_created_is_found_again(place, without_images, tmp_path):
    made = [machine(), machine("m-2", disks=(100, 200), secure_boot=True, clock="2020-01-01"), machine("n-1", lab="n")]
    for one in made:
        qemu.create(one, tmp_path / "base.raw", "true")
    assert qemu.machines() == made
    assert qemu.machines("n") == made[2:]
    assert (made[0].directory / "setup").stat().st_mode & 0o777 == 0o600
    qemu.remove(made[1])
    assert qemu.machines("m") == made[:1]


@pytest.mark.parametrize("name", ["storage", "networks", "machines", "mirror"])
def test_a_lab_that_is_called_like_a_directory_of_the_lab_s_takes_only_its_own_away(place, monkeypatch, name):
    monkeypatch.setattr(paths, "LAB", place)
    monkeypatch.setattr(podman, "containers", lambda label: [])
    kept, own = place / name / "kept", paths.lab(name) / "hosts.yml"
    for remove in (guests.down, hosts.down):
        for file in (kept, own):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        remove(name)
        assert (kept.exists(), own.exists()) == (True, False)


def test_devices_are_blank_and_sound_until_they_are_told_to_fail(place, without_images, tmp_path):
    one = machine(disks=(3, 5))
    qemu.create(one, tmp_path / "base.raw", "true")
    qemu.set_faults(one, 1, "[inject-error]\n")
    seen = [(one.directory / f"nvme{n}.raw").stat().st_size for n in (0, 1)]
    assert seen == [3 << 20, 5 << 20]
    drives = [word for word in qemu.command(one) if "driver=blkdebug" in word]
    rules = [Path(re.search(r"file\.config=([^,]+)", word)[1]).read_text(encoding="utf-8") for word in drives]
    assert rules == ["", "[inject-error]\n"]


def test_a_machine_that_was_half_made_is_none(place, without_images, tmp_path):
    qemu.create(machine(), tmp_path / "base.raw", "true")
    (machine().directory / "machine.json").unlink()
    assert qemu.machines() == []


def test_names_of_cables_are_short_and_differ(place):
    """15 characters are the most that the kernel takes."""
    some = [machine(f"{'long' * 10}-{number}") for number in range(200)]
    assert len({one.tap for one in some}) == len({one.hardware_address for one in some}) == 200
    assert all(len(one.tap) <= 15 for one in some)
    assert all(re.fullmatch("52:54:00(:[0-9a-f]{2}){3}", one.hardware_address) for one in some)


@pytest.mark.parametrize("secure", [False, True])
def test_firmware_and_devices(place, secure):
    words = qemu.command(machine(secure_boot=secure, disks=(64, 64), clock="2020-01-01"))
    text = " ".join(words)
    assert qemu.FIRMWARES[secure][0] in text
    assert ("smm=on" in text, "property=secure,value=on" in text) == (secure, secure)
    assert [word for word in words if word.startswith("nvme,")] == [
        f"nvme,id=nvme{n},drive=drive{n},serial=m-1-{n}" for n in (0, 1)
    ]
    assert "base=2020-01-01" in words


def test_a_process_that_is_another_one_counts_as_off(place, without_images, tmp_path):
    """Numbers are used again."""
    one = machine()
    assert qemu.pid(one) is None
    qemu.create(one, tmp_path / "base.raw", "true")
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (one.directory / "pid").write_text(f"{sleeper.pid}\n")
    assert qemu.pid(one) is None
    qemu.cut_power(one)
    assert sleeper.poll() is None
    sleeper.communicate(b"\n")


def test_power_is_cut_at_once(place, without_images, tmp_path):
    one = machine()
    qemu.create(one, tmp_path / "base.raw", "true")
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "-pidfile", f"{one.directory}/pid"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    running.stdout.readline()
    (one.directory / "pid").write_text(f"{running.pid}\n")
    assert qemu.pid(one) == running.pid
    reaper = threading.Thread(target=running.wait)
    reaper.start()
    qemu.cut_power(one)
    reaper.join(10)
    assert running.returncode == -9


def test_machines_of_a_removed_checkout_are_ended(place):
    """Nothing but the words of their processes tells of them."""
    words = [sys.executable, "-c", "input()", "-pidfile"]
    ours = subprocess.Popen([*words, f"{machine().directory}/pid"], stdin=subprocess.PIPE)
    other = subprocess.Popen([*words, "/elsewhere/machines/m-1/pid"], stdin=subprocess.PIPE)
    qemu.clear()
    assert ours.wait(10) == -9
    assert other.poll() is None
    other.communicate(b"\n")


@pytest.mark.parametrize(
    ("answer", "said"),
    [({"return": {"status": "running"}}, {"status": "running"}), ({"error": {"desc": "no such device"}}, None)],
)
def test_the_monitor_is_asked(place, without_images, tmp_path, answer, said):
    """Events come between the answers."""
    one = machine()
    qemu.create(one, tmp_path / "base.raw", "true")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(one.directory / "monitor.sock"))
    server.listen()

    def serve():
        connection = server.accept()[0]
        stream = connection.makefile("rw")
        for reply in ({"QMP": {}}, {"return": {}}, {"event": "RESUME"}, answer):
            stream.write(json.dumps(reply) + "\n")
            stream.flush()
            if reply in ({"QMP": {}}, {"return": {}}):
                stream.readline()

    thread = threading.Thread(target=serve)
    thread.start()
    if said is None:
        with pytest.raises(LabError, match="m-1: query-status: no such device"):
            qemu.ask(one, "query-status")
    else:
        assert qemu.ask(one, "query-status") == said
    thread.join()
    server.close()


def test_what_a_machine_runs_at_its_first_boot_is_a_program(place, monkeypatch):
    monkeypatch.setattr(guests.services, "apt_proxy", lambda: "http://10.203.7.2:3142")
    monkeypatch.setattr(guests.network, "services_address", lambda: "10.203.7.2")
    monkeypatch.setattr(hosts, "ssh_key", lambda: "ssh-ed25519 BBBB lab")
    private, public = guests._host_key()
    one = qemu.Machine("m-1", "m", "10.203.7.11", public)
    text = guests._setup(one, private, SUBNET)
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    assert "Address=10.203.7.11/24\nGateway=10.203.7.1\n" in text
    assert private in text and public in text and "BBBB" in text
    for script in (disk.SETUP, disk.CUSTOMIZE):
        assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_partitions_lie_on_whole_mebibytes_and_end_before_the_second_table():
    assert disk.ROOT_OFFSET % disk.MIB == disk.ROOT_SIZE % disk.MIB == 0
    assert disk.ROOT_OFFSET + disk.ROOT_SIZE + disk.ALIGNMENT == disk.SIZE


def test_a_system_that_is_no_debian_is_refused():
    with pytest.raises(LabError, match="no machine runs 'rocky9', which the lab has as a replica: use a Debian"):
        disk.ensure("rocky9")


def test_a_machine_without_the_emulator_is_refused(monkeypatch):
    monkeypatch.setattr(guests.shutil, "which", lambda program: None)
    with pytest.raises(LabError, match=r"`.ci/bootstrap test-all` installs what machines need"):
        guests.up("m", 1)


class Screen(threading.Thread):
    """The machine's end of a console: writes each text, and takes what is typed before it writes the next."""

    def __init__(self, path, texts):
        super().__init__(daemon=True)
        self.texts, self.typed = texts, []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(1)
        self.start()

    def run(self):
        connection, _address = self.server.accept()
        with connection:
            for text in self.texts:
                connection.sendall(text)
                self.typed.append(connection.recv(100).decode())
        self.server.close()


def test_a_key_is_enrolled_at_the_console(place, without_images, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "SETTLE", 0)
    qemu.create(machine(), tmp_path / "base.raw", "true")
    drawn = [f"\x1b[01;01H\xff\x1b[37m{words}\x1b[48;03H ".encode("latin-1") for words, _keys in console.ENROLMENT]
    screen = Screen(machine().directory / "console.sock", drawn)
    with console.Console(machine()) as one:
        console.enrol(one, "secret words")
        screen.join(10)
    assert screen.typed == [keys.format(password="secret words") for _words, keys in console.ENROLMENT]
    assert "secret words\r" in screen.typed


def test_a_console_that_says_something_else_is_quoted(place, without_images, tmp_path):
    qemu.create(machine(), tmp_path / "base.raw", "true")
    Screen(machine().directory / "console.sock", [b"\x1b[2JWelcome to\x1b[0m GRUB!\r\n"])
    with (
        console.Console(machine()) as one,
        pytest.raises(LabError, match=r"m-1 did not write 'login:' .*: Welcome to GRUB!"),
    ):
        one.wait_for("login:", 0.3)
