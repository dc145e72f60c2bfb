# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the libraries that NCCL asks: libibverbs whether adapters register DMA buffers, libcuda whether GPUs export them.

Either may crash; see child.py. Each function says records: {``device`` or ``gpu``, what was found}, or {``code``} of all.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ctypes
import errno

from ..machine.sysfs import normalise_address

# What registration of no buffer answers where adapter or kernel cannot do it at all; NCCL 2.30.7, src/transport/net_ib/gdr.cc.
UNSUPPORTED = (errno.EOPNOTSUPP, errno.EPROTONOSUPPORT)
# CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED and CUDA_ERROR_NO_DEVICE of cuda.h.
DMA_BUF_SUPPORTED = 124
NO_DEVICE = 100


def probe_verbs(say, library="libibverbs.so.1"):
    """Say of each adapter {device, code, errno}: code is supported, unsupported, not_opened or no_domain.

    Of all: no_library, no_symbol (older than libibverbs 1.12) or no_devices.
    """
    try:
        verbs = ctypes.CDLL(library, use_errno=True)
    except OSError:
        say({"code": "no_library"})
        return
    if not hasattr(verbs, "ibv_reg_dmabuf_mr"):
        say({"code": "no_symbol"})
        return
    _declare(verbs)
    count = ctypes.c_int(0)
    devices = verbs.ibv_get_device_list(ctypes.byref(count))
    if not devices or not count.value:
        say({"code": "no_devices"})
        return
    for index in range(count.value):
        code, number = _register(verbs, devices[index])
        name = verbs.ibv_get_device_name(devices[index]).decode("utf-8", "replace")
        say({"device": name, "code": code, "errno": number})


def _declare(verbs):
    pointer = ctypes.c_void_p
    verbs.ibv_get_device_list.restype = ctypes.POINTER(pointer)
    verbs.ibv_get_device_list.argtypes = [ctypes.POINTER(ctypes.c_int)]
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    for name in ("ibv_open_device", "ibv_alloc_pd", "ibv_reg_dmabuf_mr"):
        getattr(verbs, name).restype = pointer
    for name in ("ibv_get_device_name", "ibv_open_device", "ibv_alloc_pd", "ibv_dealloc_pd", "ibv_close_device"):
        getattr(verbs, name).argtypes = [pointer]
    number = ctypes.c_uint64
    verbs.ibv_reg_dmabuf_mr.argtypes = [pointer, number, ctypes.c_size_t, number, ctypes.c_int, ctypes.c_int]


def _register(verbs, device):
    """Return (code, errno) of registering an invalid buffer, which cannot succeed."""
    context = verbs.ibv_open_device(device)
    if not context:
        return "not_opened", ctypes.get_errno()
    try:
        domain = verbs.ibv_alloc_pd(context)
        if not domain:
            return "no_domain", ctypes.get_errno()
        ctypes.set_errno(0)
        verbs.ibv_reg_dmabuf_mr(domain, 0, 0, 0, -1, 0)
        number = ctypes.get_errno()
        verbs.ibv_dealloc_pd(domain)
        return "unsupported" if number in UNSUPPORTED else "supported", number
    finally:
        verbs.ibv_close_device(context)


def probe_cuda(say, library="libcuda.so.1"):
    """Say {cuda: version as cuDriverGetVersion has it}, and of each GPU {gpu: PCI address, dma_buf: whether it exports}.

    Of all: no_library, no_gpus, or refused with a status of cuda.h.
    """
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        say({"code": "no_library"})
        return
    status = cuda.cuInit(0)
    if status:
        say({"code": "no_gpus"} if status == NO_DEVICE else {"code": "refused", "status": status})
        return
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    say({"cuda": version.value})
    cuda.cuDeviceGetCount(ctypes.byref(count))
    for index in range(count.value):
        device, supported, address = ctypes.c_int(0), ctypes.c_int(0), ctypes.create_string_buffer(32)
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetPCIBusId(address, len(address), device)
        failed = cuda.cuDeviceGetAttribute(ctypes.byref(supported), DMA_BUF_SUPPORTED, device)
        name = normalise_address(address.value.decode("ascii", "replace"))
        say({"gpu": name, "dma_buf": bool(supported.value) and not failed})
