# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge single values that a node said: each function returns the value as it may go on, or raises Unfit. Pure.

A node that an attacker took over says anything: any type, any size, text that ends a line of the file it is written to.
"""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...module_utils.machine.regular import LONGEST as LONGEST_FILE
from .parsing import DocumentError, parse

Validator = Callable[[Any], Any]

# Far more than any node has, far less than stalls the controller.
LONGEST_TEXT = 2 * 2**20
MOST_VALUES = 200_000
DEEPEST = 32
LARGEST = 2**64
# RFC 1123, section 2.1, and RFC 1035, section 2.3.4.
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LONGEST_NAME = 253
_LONGEST_ADDRESS = 45
_LONGEST_KEY = 16_384
_KEY_KINDS = frozenset({"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"})
# Numbers and strides of a list of CPUs, or a mask; Linux has at most 8,192 of them.
_CPUS = re.compile(
    r"0x[0-9a-fA-F]+|(?P<first>[0-9]{1,5})(?:-(?P<last>[0-9]{1,5})(?::[1-9][0-9]{0,4}(?:/[1-9][0-9]{0,4})?)?)?"
)
MOST_CPUS = 2**16
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")


class Unfit(ValueError):
    """A value that does not fit: ``expected`` says in words what would."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def address(value: object) -> str:
    """Return the address of one host in its canonical form: one that other hosts can open a connection to."""
    found = _of_one_host(str(value)) if isinstance(value, str) and len(value) <= _LONGEST_ADDRESS else None
    if found is None:
        raise Unfit("the IP address of one host")
    return found


@functools.lru_cache(maxsize=4096)
def _of_one_host(text: str) -> str | None:
    """Return the canonical form; every room asks for the same ones."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(found) if _is_of_one_host(found) else None


def is_ip(value: object) -> bool:
    """Return True if a value is an IP address of any kind."""
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _is_of_one_host(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local or found.is_reserved:
        return False
    if found.version == 4:
        return found not in _THIS_NETWORK
    # An IPv4 address in disguise would pass for another one than it is; a scope has a meaning on one host only.
    return found.ipv4_mapped is None and not getattr(found, "scope_id", None)


def network(value: object) -> str:
    """Return an address, or a network that is not all addresses, as it is written; for what users declare."""
    expected = "an IP address or a network such as 10.0.0.0/24"
    try:
        found = ipaddress.ip_network(str(value))
    except ValueError:
        raise Unfit(expected) from None
    if found.network_address.is_unspecified or found.is_multicast or found.is_loopback:
        raise Unfit(expected)
    return str(value)


def host_name(value: object) -> str:
    """Return a host name of RFC 1123; its last label has a letter, or it would be read as an address."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise Unfit("a host name")
    labels = value.split(".")
    if not all(map(_LABEL.fullmatch, labels)) or not re.search("[A-Za-z]", labels[-1]) or _is_number(labels[-1]):
        raise Unfit("a host name")
    return str(value)


def _is_number(label: str) -> bool:
    """Return True if inet_aton takes a label for a hexadecimal number."""
    return bool(re.fullmatch("0[xX][0-9A-Fa-f]*", label))


def public_key(value: object) -> str:
    """Return kind and blob of an OpenSSH public key; the comment, which may be anything, is dropped.

    The blob begins with the same kind (RFC 4253, section 6.6).
    """
    expected = "one public key that OpenSSH writes"
    if not isinstance(value, str) or len(value) > _LONGEST_KEY or len(value.splitlines()) != 1:
        raise Unfit(expected)
    kind, blob = [*value.split(), "", ""][:2]
    try:
        content = base64.b64decode(blob.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(expected) from None
    if kind not in _KEY_KINDS or not content.startswith(len(kind).to_bytes(4, "big") + kind.encode()):
        raise Unfit(expected)
    return f"{kind} {blob}"


def is_cpu_list(text: str) -> bool:
    """Return True for a list of CPUs in any notation of cpuset(7), or none, that names no more than a machine has."""
    parts = text.replace(",", " ").split()
    found = [_CPUS.fullmatch(part) for part in parts] if len(text) <= MOST_CPUS else [None]
    spans = [1 + int(one["last"] or one["first"]) - int(one["first"]) for one in found if one and one["first"]]
    return all(found) and all(span > 0 for span in spans) and sum(spans) <= MOST_CPUS


def file_name(value: object) -> str:
    """Return the name of a file within a directory."""
    if not isinstance(value, str) or value in ("", ".", "..") or len(value.encode("utf-8", "replace")) > 255:
        raise Unfit("the name of a file")
    if "/" in value or "\\" in value or not value.isprintable():
        raise Unfit("the name of a file")
    return str(value)


def package_name(value: object) -> str:
    """Return the name of a package of apt, dnf or Python; never an option."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+_:-]{0,213}", value):
        raise Unfit("the name of a package")
    return str(value)


def version(value: object) -> str:
    """Return a version of a package of apt, dnf or Python, with its epoch and release."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+~^_:!-]{0,127}", value):
        raise Unfit("a version")
    return str(value)


def number(value: object, least: float = -LARGEST, most: float = LARGEST) -> int | float:
    """Return a finite number within bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:  # false for NaN
        raise Unfit("a number" if (least, most) == (-LARGEST, LARGEST) else f"a number from {least} to {most}")
    return value


def flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return bool(value)


def text(longest: int = 128) -> Validator:
    """Return a validator of one line of text that no terminal, file or template takes for more than that."""

    def judge(value: object) -> str:
        if not isinstance(value, str) or len(value) > longest or not value.isprintable() or re.search("{[{%#]", value):
            raise Unfit(f"a line of text of at most {longest} characters")
        return str(value)

    return judge


def file_content(value: object) -> str:
    """Return the content of a file; what that means is for its parser to judge."""
    if not isinstance(value, str) or len(value) > LONGEST_FILE:
        raise Unfit(f"the text of a file of at most {LONGEST_FILE} characters")
    return str(value)


def listing(of: Validator, most: int = 1000) -> Validator:
    """Return a validator of a list whose elements fit."""

    def judge(value: object) -> list[Any]:
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise Unfit(f"a list of at most {most} values")
        return [of(one) for one in value]

    return judge


def either(*kinds: type) -> Validator:
    """Return a validator of values of JSON of these types."""

    def judge(value: object) -> Any:
        if not isinstance(value, kinds):
            raise Unfit("a value of its kind")
        return plain(value)

    return judge


def fields(**of: Validator) -> Validator:
    """Return a validator of a mapping: each of these fields that is there fits."""

    def judge(value: object) -> Any:
        either(dict)(value)
        for name, judge_field in of.items():
            if value.get(name) is not None:  # type: ignore[attr-defined]
                judge_field(value[name])  # type: ignore[index]
        return value

    return judge


def mapping(of: Validator, most: int = 10_000) -> Validator:
    """Return a validator of a mapping whose values fit."""

    def judge(value: object) -> Any:
        if not isinstance(value, Mapping) or len(value) > most or not all(isinstance(key, str) for key in value):
            raise Unfit(f"a mapping of at most {most} values")
        for one in value.values():
            of(one)
        return value

    return judge


def document(cls: type) -> Validator:
    """Return a validator of what is to be parsed as a dataclass."""

    def judge(value: object) -> Any:
        plain(value)
        try:
            parse(cls, value)
        except DocumentError as error:
            raise Unfit(f"{error.path} that is {error.expected}" if error.path else error.expected) from None
        return value

    return judge


def plain(value: Any, finite: bool = True) -> Any:
    """Return a value of JSON whose size, depth and numbers have bounds. finite: without infinity and NaN; else numbers may be any."""
    waiting, seen = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        seen += 1
        if isinstance(one, Mapping):
            children = list(one.values())
            if not all(isinstance(key, str) and len(key) <= LONGEST_TEXT for key in one):
                raise Unfit("a document with names of a reasonable length")
        elif isinstance(one, (list, tuple)):
            children = list(one)
        else:
            children = []
            _scalar(one, finite)
        if depth >= DEEPEST or seen + len(waiting) + len(children) > MOST_VALUES:
            raise Unfit(f"a document of at most {MOST_VALUES} values and {DEEPEST} levels")
        waiting += [(child, depth + 1) for child in children]
    return value


def _scalar(value: object, finite: bool) -> None:
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise Unfit(f"a document with texts of at most {LONGEST_TEXT} characters")
    elif isinstance(value, float):
        if finite and not math.isfinite(value):
            raise Unfit("a document with finite numbers")
    elif isinstance(value, int):
        if finite and not -LARGEST <= value <= LARGEST:
            raise Unfit("a document with numbers of a reasonable size")
    elif value is not None:
        raise Unfit("a document of JSON")
