# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel module without code: enough ELF for modinfo, depmod and our own reading of ``version=``."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NAMES = b"\0.modinfo\0.shstrtab\0.symtab\0.strtab\0"


def kernel_module(name: str, version: str, licence: str) -> bytes:
    """Return an x86-64 relocatable object whose .modinfo names the module's version."""
    facts = (f"version={version}", f"license={licence}", f"name={name}", "depends=", "vermagic=lab SMP mod_unload ")
    modinfo = b"\0" + b"".join(fact.encode() + b"\0" for fact in facts)
    symbols = bytes(24)  # the null symbol
    contents = [(b".modinfo", 1, 2, modinfo, 0, 0), (b".shstrtab", 3, 0, _NAMES, 0, 0)]
    contents += [(b".symtab", 2, 0, symbols, 4, 24), (b".strtab", 3, 0, b"\0", 0, 0)]
    body, table = b"", bytes(_SECTION.size)
    for label, kind, flags, data, link, size in contents:
        offset = _HEADER.size + len(body)
        table += _SECTION.pack(_NAMES.index(label), kind, flags, 0, offset, len(data), link, int(kind == 2), 1, size)
        body += data
    body += bytes(-len(body) % 8)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _HEADER.pack(
        ident, 1, 62, 1, 0, 0, _HEADER.size + len(body), 0, _HEADER.size, 0, 0, _SECTION.size, len(contents) + 1, 2
    )
    return header + body + table
