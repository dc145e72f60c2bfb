# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single values that a node said: what may go on, and what may not."""

import base64
import contextlib
import math
import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import values
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.values import Unfit
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.nics import cpu_numbers
from hypothesis import given
from hypothesis import strategies as st


def key(kind="ssh-ed25519", inner=None):
    inner = (inner or kind).encode()
    return f"{kind} {base64.b64encode(len(inner).to_bytes(4, 'big') + inner + bytes(36)).decode()}"


NOT_TEXT = [None, True, 0, 1.5, [], ["10.0.0.1"], {}, b"10.0.0.1"]
FIT = [
    (values.address, "10.0.0.1", "10.0.0.1"),
    (values.address, "FD00:0::1", "fd00::1"),
    (values.address, "2001:db8::1", "2001:db8::1"),
    (values.host_name, "gpu-1", "gpu-1"),
    (values.host_name, "GPU-1.example.org", "GPU-1.example.org"),
    (values.host_name, "a" * 63 + ".example", "a" * 63 + ".example"),
    (values.host_name, "1gpu", "1gpu"),
    (values.public_key, key() + "\n", key()),
    (values.public_key, key() + " trainer@gpu-1, \x1b[31mof anybody", key()),
    (values.public_key, key("ecdsa-sha2-nistp256"), key("ecdsa-sha2-nistp256")),
    (values.file_name, "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"),
    (values.package_name, "libnvidia-compute-535", "libnvidia-compute-535"),
    (values.package_name, "libstdc++6", "libstdc++6"),
    (values.version, "1:535.183.01-0ubuntu1~22.04.1+b2", "1:535.183.01-0ubuntu1~22.04.1+b2"),
    (values.number, 1.5, 1.5),
    (values.number, -3, -3),
    (values.flag, False, False),
    (values.text(5), "rack1", "rack1"),
    (values.listing(values.flag), [True], [True]),
    (values.plain, {"a": [1, 2.5, "b", None, True]}, {"a": [1, 2.5, "b", None, True]}),
    (values.document(GpuNode), {"gpus": [{"name": "A100"}]}, {"gpus": [{"name": "A100"}]}),
]  # fmt: skip
ADDRESSES = [
    "", " ", "node-a", "10.0.0.1/32", "10.0.0.0/24", "0.0.0.0/0", "0.0.0.0", "0.1.2.3", "::", "::/0", "::1", "127.0.0.1", "127.1.2.3",
    "224.0.0.1", "239.1.1.1", "ff02::1", "169.254.1.1", "fe80::1", "fe80::1%eth0", "2001:db8::1%eth0", "255.255.255.255", "240.0.0.1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::10.0.0.1", "010.0.0.1", "10.0.0.1\n", "10.0.0.1 ", "10.1", "0x7f.1", "10.0.0.1,10.0.0.2", "１0.0.0.1",
]  # fmt: skip
NAMES = [
    "", ".", "gpu-1.", ".gpu-1", "gpu..1", "a" * 64, f"{'a.' * 127}aa", "-gpu", "gpu-", "gpu_1", "gpu 1", "gpu\t1", "gpu-1\n10.0.0.9 pypi.org",
    "gpu-1\n", "\n", "x,*", "*", "?", "!gpu-1", "@cert-authority", "[gpu-1]:22", "#gpu", "gpü", "gpu\u200b", "ｇpu", "10.0.0.1", "1.2.3", "0x7f",
    "gpu\x1b[31m", "gpu\x00", "{{ x }}", "$(id)", "gpu/1", "..",
]  # fmt: skip
KEYS = [
    "", "\n", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 AAAA", key("ssh-ed25519", "ssh-rsa"), key("ssh-dss"), key("secret"),
    f"{key()}\n{key()}", f"\n{key()}\n\n", f"{key()}\r{key()}", f"{key()}\x0b* {key()}", f"{key()}\u2028{key()}", f'command="id" {key()}',
    f"no-pty {key()}", f"*,gpu-1 {key()}", f"@cert-authority * {key()}", f"# {key()}", key().replace(" ", " \xe4"), key()[:-3], f"{key()} " + "x" * 20000,
    key("ssh-ed25519-cert-v01@openssh.com"),
]  # fmt: skip
FILES = ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "a\n", "a\x00b", "\x1b[2J", "a" * 256, "\u202egpj.exe"]
PACKAGES = ["", "-y", "--option=x", "a b", "a;b", "a\n", "../a", "a/b", "$(id)", "a" * 300, "ä"]
VERSIONS = ["", "-1", "1 2", "1\n2", "1;2", "1" * 129, "${x}", "../1"]
HUGE = 10**400
NUMBERS = [math.nan, math.inf, -math.inf, HUGE, -HUGE, True, "1", None, [1], 2.0**80]


def unfit():
    for validator, bad in (
        (values.address, ADDRESSES), (values.host_name, NAMES), (values.public_key, KEYS), (values.file_name, FILES),
        (values.package_name, PACKAGES), (values.version, VERSIONS),
    ):  # fmt: skip
        yield from ((validator, one) for one in [*bad, *NOT_TEXT])
    yield from ((values.number, one) for one in NUMBERS)
    yield from ((values.flag, one) for one in (None, 0, 1, "true", [], {}))
    yield from (
        (values.text(5), one)
        for one in ("racks1", "a\n", "\x1b[1m", "{{ 1 }}", "{% x", "{# x", "\u202e", "\ud800", *NOT_TEXT)
    )
    yield from ((values.listing(values.flag, 2), one) for one in ([True] * 3, [1], "x", {}, None))
    deep: object = 1
    for _level in range(100_000):
        deep = [deep]
    wide = [0] * 1_000_000
    yield from (
        (values.plain, one)
        for one in (deep, wide, "x" * 10_000_000, {"x" * 10_000_000: 1}, {1: 2}, {"a": math.nan}, [HUGE], {1, 2}, b"")
    )
    yield from (
        (values.document(GpuNode), one)
        for one in ([], "x", {"gpus": {}}, {"gpus": [1]}, {"gpus": [{"index": "x"}]}, {"x": deep})
    )


@pytest.mark.parametrize(("validator", "value", "result"), FIT)
def test_what_fits_goes_on(validator, value, result):
    assert validator(value) == result


def test_what_does_not_fit_is_refused():
    """Not parametrized: the identifiers would hold megabytes."""
    passed = []
    for validator, value in unfit():
        try:
            passed.append((validator.__name__, validator(value)))
        except Unfit as error:
            assert error.expected and error.expected.isprintable()
    assert passed == []


@given(st.text())
def test_a_name_that_fits_is_one_word_of_a_line(text):
    try:
        name = values.host_name(text)
    except Unfit:
        return
    assert re.fullmatch(r"[A-Za-z0-9.-]+", name)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)
VALIDATORS = [one for one in vars(values).values() if callable(one) and getattr(one, "__name__", "") in (
    "address", "network", "host_name", "public_key", "file_name", "package_name", "version", "number", "flag", "file_content", "plain",
)] + [values.text(), values.listing(values.plain), values.mapping(values.plain), values.document(GpuNode), values.fields(a=values.flag)]  # fmt: skip


@pytest.mark.parametrize("validator", VALIDATORS, ids=lambda one: one.__qualname__)
@given(value=ANY)
def test_nothing_else_is_raised(validator, value):
    with contextlib.suppress(Unfit):
        validator(value)


@pytest.mark.parametrize(
    "text", ["", "0", "0-31,64-95", "0 2 4", "0-14:2", "0-31:2/8", "0xff0f", "0,0", "0-65535", ",".join(map(str, range(0, 8192, 2)))]
)  # fmt: skip
def test_a_list_of_cpus_has_any_notation(text):
    assert values.is_cpu_list(text)


@pytest.mark.parametrize(
    "text", ["N/A", "-1", "3-1", "0-65536", "0-65535,0", "0-3:0", "0-3:1/0", "1.5", "0x", "0-", "²"]
)
def test_a_list_of_what_is_no_cpu_is_none(text):
    assert not values.is_cpu_list(text)


@given(st.text("0123456789-,:/x af", max_size=12))
def test_a_list_of_cpus_is_read_by_all_that_read_it(text):
    if values.is_cpu_list(text):
        assert all(cpu <= 16 ** len(text) for cpu in cpu_numbers(text))
