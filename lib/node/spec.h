/* SPDX-License-Identifier: MIT */
/*
 * The two requests that cross processes as a whole: what a sandbox shall be (its spec, which is also the file `spec` of
 * its directory) and what a command shall be. Encoded with util/wire.h. Strings of a decoded request lie in the buffer that
 * it was decoded from.
 */
#ifndef DSEC__SPEC_H
#define DSEC__SPEC_H

#include <dsec/exec.h>
#include <dsec/sandbox.h>

#include "../util/wire.h"

#define DSEC__PIDS_DEFAULT 1024
#define DSEC__ID_LEN 25 /* "dsec-" and 20 of base32 */

struct dsec__spec {
	const char *id, *backend, *image, *name, *run, *hostname, *workdir;
	char **env; /* owned by the decoded spec */
	uint64_t flags, cpu_millis, memory_bytes, pids, disk_bytes, disk_inodes, created_ns;
	uint32_t uid, gid; /* of commands, inside */
	uint32_t network, top;
};

void dsec__spec_encode(struct dsec__buf *b, const struct dsec__spec *s);
/* -EBADMSG (nothing to release) when the bytes are no spec of this version. */
int dsec__spec_decode(struct dsec__spec *ret_spec, const void *data, size_t n);
void dsec__spec_done(struct dsec__spec *s);
/* Whether a sandbox made for `a` can become the one that `b` asks for: all is equal but what can be set afterwards. */
bool dsec__spec_same_shape(const struct dsec__spec *a, const struct dsec__spec *b);

struct dsec__request {
	uint32_t kind, mode;
	uint64_t flags, timeout_ms, output_limit;
	uint32_t uid, gid; /* UINT32_MAX: the sandbox's */
	uint16_t rows, cols;
	const char *workdir; /* NULL: the sandbox's */
	char **argv, **env;  /* owned by the decoded request */
	const uint8_t *input;
	size_t input_len; /* the first piece of stdin; more follows in frames where flags has DSEC_EXEC_STDIN */
};

void dsec__request_encode(struct dsec__buf *b, const struct dsec__request *q);
int dsec__request_decode(struct dsec__request *ret_request, const void *data, size_t n);
void dsec__request_done(struct dsec__request *q);

/* "root", "uid" or "uid:gid" in decimal, each below 65536: the ids that a sandbox has. -EINVAL otherwise. */
int dsec__user_parse(const char *user, uint32_t *ret_uid, uint32_t *ret_gid);

#endif
