/* Copyright: The allreduce.gpu authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A libcuda with two GPUs, as cuda.h declares what the probe calls: the first exports DMA buffers, the second does not.
 * INIT: what cuInit answers.
 */
#include <stdio.h>

int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetPCIBusId(char *text, int length, int device)
{
	return snprintf(text, length, "0000:%02X:00.0", 7 + 8 * device) >= length;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 124 && device == 0; return 0; }
