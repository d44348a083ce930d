/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes: every check of state, capability and option is here, then one call of a slot. States:
 *
 *   STARTING -> RUNNING -> STOPPING -> STOPPED      FAILED from STARTING; stop is allowed from any
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "core.h"

int dsec__owner_check(const struct dsec_node *node, struct dsec_error *err)
{
	if (!node)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "node: is NULL");
	if (node->owner == getpid())
		return 0;
	return dsec__fail(err, -ECHILD, DSEC_STEP_NODE, "the handle belongs to process %d, which forked this one",
			  (int)node->owner);
}

static int sandbox_check(const struct dsec_sandbox *sb, struct dsec_error *err)
{
	if (!sb)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sandbox: is NULL");
	return dsec__owner_check(sb->node, err);
}

static int check_caps(const struct dsec_backend_ops *ops, const struct dsec_sandbox_opts *o, struct dsec_error *err)
{
	const char *field = NULL;

	if (!(ops->caps & DSEC_CAP_LIMITS) && !(o->flags & DSEC_SANDBOX_LIMITS_OPTIONAL)) {
		field = o->cpu_millis ? "cpu_millis" : o->memory_bytes ? "memory_bytes" : o->pids ? "pids" : NULL;
		field = field ? field : o->disk_bytes ? "disk_bytes" : o->disk_inodes ? "disk_inodes" : NULL;
	}
	if (!(ops->caps & DSEC_CAP_ATTACH) && o->flags & DSEC_SANDBOX_RETAIN)
		field = "flags: DSEC_SANDBOX_RETAIN";
	if (!(ops->caps & DSEC_CAP_NETWORK_HOST) && o->network == DSEC_NETWORK_HOST)
		field = "network: DSEC_NETWORK_HOST";
	if (!field)
		return 0;
	return dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS, "%s: not supported by backend \"%s\"", field, ops->name);
}

static struct dsec_sandbox *sandbox_new(struct dsec_node *node, const struct dsec_backend_ops *ops)
{
	struct dsec_sandbox *sb = calloc(1, sizeof *sb);

	if (!sb)
		return NULL;
	sb->node = node;
	sb->ops = ops;
	sb->idle_channel = -EBADF;
	return sb;
}

int dsec_sandbox_create(struct dsec_node *node, const struct dsec_sandbox_opts *opts, struct dsec_sandbox **ret_sandbox,
			struct dsec_error *err)
{
	KEEP_ERRNO;
	const struct dsec_backend_ops *ops;
	struct dsec_sandbox_opts o;
	struct dsec_sandbox *sb;
	const char *backend;
	int r;

	if (!node || !ret_sandbox)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "node, ret_sandbox: is NULL");
	r = dsec__owner_check(node, err);
	if (r == 0)
		r = dsec__sandbox_opts_check(&o, opts, err);
	if (r < 0)
		return r;
	backend = o.backend ? o.backend : "container";
	ops = dsec__backend_find(backend);
	if (!ops)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "backend: there is no \"%.32s\"", backend);
	r = ops->probe(node, err);
	if (r == 0)
		r = check_caps(ops, &o, err);
	if (r < 0)
		return r;
	sb = sandbox_new(node, ops);
	if (!sb)
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a sandbox handle");
	dsec__id_new(sb->id);
	r = ops->create(sb, &o, err);
	if (r < 0) {
		free(sb);
		return r;
	}
	if (!(o.flags & DSEC_SANDBOX_NOWAIT)) {
		r = dsec_sandbox_wait(sb, -1, err);
		if (r < 0) {
			dsec_sandbox_close(sb);
			return r;
		}
	}
	*ret_sandbox = sb;
	return 0;
}

int dsec_sandbox_attach(struct dsec_node *node, const char *id, struct dsec_sandbox **ret_sandbox,
			struct dsec_error *err)
{
	KEEP_ERRNO;
	AUTO_CLOSE int dir = -EBADF;
	struct dsec__buf buf = { 0 };
	const struct dsec_backend_ops *ops = NULL;
	struct dsec__spec spec;
	struct dsec_sandbox *sb;
	char found[DSEC__ID_LEN + 1];
	int r;

	if (!node || !id || !ret_sandbox)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "node, id, ret_sandbox: is NULL");
	r = dsec__owner_check(node, err);
	if (r == 0)
		r = dir = dsec__sbdir_find(&node->state, id, found, err);
	if (r < 0)
		return r;
	r = dsec__sbdir_spec(dir, &buf, &spec);
	if (r == 0) {
		ops = dsec__backend_find(spec.backend);
		dsec__spec_done(&spec);
	}
	dsec__buf_done(&buf);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_NAME, "read the spec of \"%s\"", found);
	if (!ops || !(ops->caps & DSEC_CAP_ATTACH))
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_NAME, "\"%s\" is of a backend that cannot be attached to", found);
	sb = sandbox_new(node, ops);
	if (!sb)
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a sandbox handle");
	memcpy(sb->id, found, sizeof found);
	r = ops->attach(sb, sb->id, err);
	if (r < 0) {
		free(sb);
		return r;
	}
	sb->state = SANDBOX_RUNNING;
	*ret_sandbox = sb;
	return 0;
}

const char *dsec_sandbox_id(const struct dsec_sandbox *sandbox)
{
	return sandbox->id;
}

uint64_t dsec_sandbox_caps(const struct dsec_sandbox *sandbox)
{
	return sandbox->ops->caps;
}

int dsec_sandbox_fd(const struct dsec_sandbox *sandbox)
{
	int (*slot)(const struct dsec_sandbox *) = DSEC__SLOT(sandbox->ops, fd);

	return slot ? slot(sandbox) : -EINVAL;
}

int dsec_sandbox_wait(struct dsec_sandbox *sandbox, int64_t timeout_ms, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = sandbox_check(sandbox, err);

	if (r < 0)
		return r;
	switch (atomic_load(&sandbox->state)) {
	case SANDBOX_STARTING:
		r = sandbox->ops->start(sandbox, timeout_ms, err);
		if (r == 0) {
			sandbox->state = SANDBOX_RUNNING;
			dsec__log(DSEC_LOG_DEBUG, "sandbox \"%s\" runs", sandbox->id);
		} else if (r != -ETIMEDOUT)
			sandbox->state = SANDBOX_FAILED;
		return r;
	case SANDBOX_STOPPING:
		r = sandbox->ops->stop(sandbox, timeout_ms, err);
		if (r == 0) {
			sandbox->state = SANDBOX_STOPPED; /* after a failure it may be asked again */
			dsec__log(DSEC_LOG_DEBUG, "sandbox \"%s\" ended", sandbox->id);
		}
		return r;
	case SANDBOX_FAILED:
		return dsec__fail(err, -EPIPE, DSEC_STEP_KEEPER, "sandbox \"%s\" failed to start", sandbox->id);
	default:
		return 0;
	}
}

int dsec_sandbox_stats(struct dsec_sandbox *sandbox, struct dsec_sandbox_stats *ret, struct dsec_error *err)
{
	KEEP_ERRNO;
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	int r = sandbox_check(sandbox, err);

	if (r < 0)
		return r;
	if (!ret || ret->sz < 2 * sizeof(size_t))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: too small for struct dsec_sandbox_stats");
	if (!(sandbox->ops->caps & DSEC_CAP_STATS))
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS, "stats: not supported by backend \"%s\"",
				  sandbox->ops->name);
	if (sandbox->state != SANDBOX_RUNNING)
		return dsec__fail(err, -EPIPE, DSEC_STEP_KEEPER, "sandbox \"%s\" is not running", sandbox->id);
	r = sandbox->ops->stats(sandbox, &s, err);
	if (r < 0)
		return r;
	s.sz = ret->sz;
	memcpy(ret, &s, ret->sz < sizeof s ? ret->sz : sizeof s);
	return 0;
}

int dsec_sandbox_stop(struct dsec_sandbox *sandbox, uint64_t flags, struct dsec_error *err)
{
	KEEP_ERRNO;
	struct dsec_error e = { 0 };
	int r = sandbox_check(sandbox, err);

	if (r < 0)
		return r;
	if (flags & ~(uint64_t)DSEC_SANDBOX_NOWAIT)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "flags: only DSEC_SANDBOX_NOWAIT is known here");
	if (sandbox->state == SANDBOX_STOPPED)
		return 0;
	sandbox->state = SANDBOX_STOPPING;
	r = dsec_sandbox_wait(sandbox, flags & DSEC_SANDBOX_NOWAIT ? 0 : -1, &e);
	if (r == -ETIMEDOUT && flags & DSEC_SANDBOX_NOWAIT)
		return 0;
	if (r < 0 && err)
		*err = e;
	return r;
}

void dsec_sandbox_close(struct dsec_sandbox *sandbox)
{
	KEEP_ERRNO;
	int idle;

	if (!sandbox)
		return;
	sandbox->ops->destroy(sandbox);
	idle = atomic_load(&sandbox->idle_channel);
	dsec__closep(&idle);
	free(sandbox);
}
