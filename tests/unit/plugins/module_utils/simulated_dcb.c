/* Copyright: The allreduce.gpu authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A kernel with data centre bridging for the real program dcb: preloaded, it answers what the program sends through libmnl.
 * The port's state is the file DCB_STATE, one for each interface in that directory; a port without a file does not have it.
 * It begins as mlx5 does (en_dcbnl.c): each priority in a class of its own, no application entries, nothing lossless.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define TSA_VENDOR 255

struct port {
	__u8 dcbx;
	struct ieee_pfc pfc;
	struct ieee_ets ets;
	struct dcbnl_buffer buffer;
	int apps;
	struct dcb_app app[64];
};

static char reply[16384];
static size_t length;
static char path[512];

static struct nlattr *put(struct nlmsghdr *message, int type, const void *data, size_t size)
{
	struct nlattr *attribute = (void *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));
	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + size;
	if (size)
		memcpy((char *)attribute + NLA_HDRLEN, data, size);
	message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + NLA_ALIGN(attribute->nla_len);
	return attribute;
}

static void end(struct nlmsghdr *message, struct nlattr *nest)
{
	nest->nla_len = (char *)message + message->nlmsg_len - (char *)nest;
}

static void *next(void *attribute)
{
	return (char *)attribute + NLA_ALIGN(((struct nlattr *)attribute)->nla_len);
}

static void *find(void *start, void *stop, int type)
{
	for (; start < stop; start = next(start))
		if ((((struct nlattr *)start)->nla_type & NLA_TYPE_MASK) == type)
			return start;
	return NULL;
}

static int load(struct port *port, const char *interface)
{
	FILE *file;
	int complete;

	snprintf(path, sizeof(path), "%s/%s", getenv("DCB_STATE"), interface);
	file = fopen(path, "rb");
	if (!file)
		return 0;
	complete = fread(port, sizeof(*port), 1, file);
	fclose(file);
	if (complete)
		return 1;
	memset(port, 0, sizeof(*port));
	port->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	port->pfc.pfc_cap = 8;
	port->ets.ets_cap = 8;
	for (int tc = 0; tc < 8; tc++) {
		port->ets.tc_tx_bw[tc] = 100;
		port->ets.tc_tsa[tc] = TSA_VENDOR;
		port->ets.prio_tc[tc] = tc;
	}
	port->ets.prio_tc[0] = 1;
	port->ets.prio_tc[1] = 0;
	port->buffer.buffer_size[0] = 262016;
	port->buffer.total_size = 524160;
	return 1;
}

static void save(const struct port *port)
{
	FILE *file = fopen(path, "wb");
	fwrite(port, sizeof(*port), 1, file);
	fclose(file);
}

/* As mlx5: a buffer without losses for the priorities of PFC. */
static void set_pfc(struct port *port, const struct ieee_pfc *pfc)
{
	port->pfc.pfc_en = pfc->pfc_en;
	for (int priority = 0; priority < 8; priority++)
		port->buffer.prio2buffer[priority] = pfc->pfc_en >> priority & 1;
	port->buffer.buffer_size[1] = pfc->pfc_en ? 131072 : 0;
}

static void edit_app(struct port *port, const struct dcb_app *app, int add)
{
	for (int index = 0; index < port->apps; index++)
		if (!memcmp(&port->app[index], app, sizeof(*app))) {
			if (!add)
				port->app[index] = port->app[--port->apps];
			return;
		}
	if (add)
		port->app[port->apps++] = *app;
}

static void edit(struct port *port, void *start, void *stop, int add)
{
	struct nlattr *found = find(start, stop, DCB_ATTR_IEEE_APP_TABLE);
	if (found)
		for (void *one = (char *)found + NLA_HDRLEN; one < (void *)((char *)found + found->nla_len); one = next(one))
			edit_app(port, (void *)((char *)one + NLA_HDRLEN), add);
	if ((found = find(start, stop, DCB_ATTR_IEEE_PFC)))
		set_pfc(port, (void *)((char *)found + NLA_HDRLEN));
	if ((found = find(start, stop, DCB_ATTR_IEEE_ETS))) {
		struct ieee_ets *ets = (void *)((char *)found + NLA_HDRLEN);
		port->ets = *ets;
		for (int tc = 0; tc < 8; tc++)
			if (ets->tc_tsa[tc] != IEEE_8021QAZ_TSA_ETS)
				port->ets.tc_tx_bw[tc] = 100;
	}
	save(port);
}

static void describe(struct nlmsghdr *message, struct port *port)
{
	struct nlattr *nest = put(message, DCB_ATTR_IEEE, NULL, 0), *table;
	put(message, DCB_ATTR_IEEE_ETS, &port->ets, sizeof(port->ets));
	put(message, DCB_ATTR_IEEE_PFC, &port->pfc, sizeof(port->pfc));
	put(message, DCB_ATTR_DCB_BUFFER, &port->buffer, sizeof(port->buffer));
	table = put(message, DCB_ATTR_IEEE_APP_TABLE, NULL, 0);
	for (int index = 0; index < port->apps; index++)
		put(message, DCB_ATTR_IEEE_APP, &port->app[index], sizeof(port->app[index]));
	end(message, table);
	end(message, nest);
	put(message, DCB_ATTR_DCBX, &port->dcbx, 1);
}

ssize_t mnl_socket_sendto(void *socket, const void *request, size_t size)
{
	const struct nlmsghdr *asked = request;
	const struct dcbmsg *what = NLMSG_DATA(asked);
	char *start = (char *)what + NLMSG_ALIGN(sizeof(*what)), *stop = (char *)request + asked->nlmsg_len;
	struct nlattr *interface = find(start, stop, DCB_ATTR_IFNAME), *nest = find(start, stop, DCB_ATTR_IEEE);
	struct nlmsghdr *answer = (void *)reply;
	struct port port;
	struct nlmsgerr *error;
	__u8 fine = 0;
	int has = load(&port, (char *)interface + NLA_HDRLEN);

	memset(reply, 0, sizeof(reply));
	answer->nlmsg_type = asked->nlmsg_type;
	answer->nlmsg_seq = asked->nlmsg_seq;
	answer->nlmsg_len = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(*what));
	memcpy(NLMSG_DATA(answer), what, sizeof(*what));
	if (has && what->cmd == DCB_CMD_IEEE_GET)
		describe(answer, &port);
	else if (has && (what->cmd == DCB_CMD_IEEE_SET || what->cmd == DCB_CMD_IEEE_DEL)) {
		edit(&port, (char *)nest + NLA_HDRLEN, (char *)nest + nest->nla_len, what->cmd == DCB_CMD_IEEE_SET);
		put(answer, DCB_ATTR_IEEE, &fine, 1);
	} else
		answer->nlmsg_len = 0;
	length = NLMSG_ALIGN(answer->nlmsg_len);
	answer = (void *)(reply + length);
	answer->nlmsg_type = NLMSG_ERROR;
	answer->nlmsg_seq = asked->nlmsg_seq;
	answer->nlmsg_len = NLMSG_HDRLEN + sizeof(*error);
	error = NLMSG_DATA(answer);
	error->error = has ? 0 : -EOPNOTSUPP;
	length += NLMSG_ALIGN(answer->nlmsg_len);
	return size;
}

ssize_t mnl_socket_recvfrom(void *socket, void *buffer, size_t size)
{
	memcpy(buffer, reply, length);
	return length;
}
