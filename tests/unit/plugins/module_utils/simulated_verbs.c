/* Copyright: The allreduce.gpu authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A libibverbs with adapters mlx5_0 and mlx5_1, as libibverbs/verbs.h of rdma-core declares what the probe calls.
 * ANSWER: what registering no buffer answers on mlx5_1 (mlx5_0 answers EBADF); -1 crashes, -2 hangs. DEVICES: how many there are.
 * CLOSED: mlx5_1 cannot be opened. WITHOUT_DMABUF: older than release 1.12.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

struct ibv_device { const char *name; };
struct ibv_context { struct ibv_device *device; int open; };
struct ibv_pd { struct ibv_context *context; };

static struct ibv_device devices[2] = {{"mlx5_0"}, {"mlx5_1"}};
static struct ibv_device *list[3] = {&devices[0], &devices[1], NULL};
static struct ibv_context contexts[2];
static struct ibv_pd domains[2];

struct ibv_device **ibv_get_device_list(int *count)
{
	*count = DEVICES;
	list[DEVICES] = NULL;
	return list;
}

const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	int index = device - devices;
#ifdef CLOSED
	if (index == 1) {
		errno = EACCES;
		return NULL;
	}
#endif
	contexts[index] = (struct ibv_context){device, 1};
	return &contexts[index];
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (!context->open)
		return NULL;
	domains[context - contexts].context = context;
	return &domains[context - contexts];
}

int ibv_dealloc_pd(struct ibv_pd *domain) { return domain->context == NULL; }
int ibv_close_device(struct ibv_context *context) { return context->open = 0; }

#ifndef WITHOUT_DMABUF
void *ibv_reg_dmabuf_mr(struct ibv_pd *domain, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	if (offset || length || iova || fd != -1 || access) /* not the question that NCCL asks */
		return domain;
	if (domain->context->device == &devices[0]) {
		errno = EBADF;
		return NULL;
	}
	if (ANSWER == -1)
		*(volatile int *)8 = 1;
	if (ANSWER == -2)
		pause();
	errno = ANSWER;
	return NULL;
}
#endif
