# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with a kernel of their own, in addition to the lab's containers: QEMU's emulation, on the lab's bridge, reached over SSH.

They boot Debian's kernel from a disk with UEFI firmware, shim and GRUB as installed servers do. Emulation is 10 to 30 times slower than
the processor: what a machine needs is in its image already, which is made natively.
"""
