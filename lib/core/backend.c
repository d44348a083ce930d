/* SPDX-License-Identifier: MIT */
/* The one table of backends: built in, then registered. Only core/sandbox.c and core/exec.c call their slots. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "core.h"

#define REGISTERED_MAX 32

static const struct dsec_backend_ops *const builtin[] = {
	&dsec__backend_container, &dsec__backend_function, &dsec__backend_microvm, &dsec__backend_fullvm,
	&dsec__backend_null,
};

static const struct dsec_backend_ops *_Atomic registered[REGISTERED_MAX];
static pthread_mutex_t register_lock = PTHREAD_MUTEX_INITIALIZER;

const struct dsec_backend_ops *dsec__backend_find(const char *name)
{
	for (size_t i = 0; i < sizeof builtin / sizeof builtin[0]; i++)
		if (strcmp(builtin[i]->name, name) == 0)
			return builtin[i];
	for (size_t i = 0; i < REGISTERED_MAX; i++) {
		const struct dsec_backend_ops *ops = atomic_load(&registered[i]);

		if (ops && strcmp(ops->name, name) == 0)
			return ops;
	}
	return NULL;
}

static const char *missing_slot(const struct dsec_backend_ops *ops)
{
	if (!ops->probe)
		return "probe";
	if (!ops->create)
		return "create";
	if (!ops->start)
		return "start";
	if (!ops->exec)
		return "exec";
	if (!ops->signal)
		return "signal";
	if (!ops->stop)
		return "stop";
	if (!ops->destroy)
		return "destroy";
	if (ops->caps & DSEC_CAP_ATTACH && !DSEC__SLOT(ops, attach))
		return "attach";
	if (ops->caps & DSEC_CAP_STATS && !DSEC__SLOT(ops, stats))
		return "stats";
	if (ops->caps & DSEC_CAP_FREEZE && !DSEC__SLOT(ops, freeze))
		return "freeze";
	if (ops->caps & DSEC_CAP_FREEZE && !DSEC__SLOT(ops, thaw))
		return "thaw";
	return NULL;
}

static int check(const struct dsec_backend_ops *ops, struct dsec_error *err)
{
	const uint64_t known = DSEC_CAP_EXEC | DSEC_CAP_FILES | DSEC_CAP_TTY | DSEC_CAP_LIMITS | DSEC_CAP_STATS |
			       DSEC_CAP_ATTACH | DSEC_CAP_FREEZE | DSEC_CAP_FORK_DISK | DSEC_CAP_FORK_MEMORY |
			       DSEC_CAP_NETWORK_HOST;
	const char *slot;
	size_t n;

	if (!ops || ops->sz < offsetof(struct dsec_backend_ops, attach))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: the table does not reach its required slots");
	if (!ops->name)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "name: is NULL");
	n = strspn(ops->name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (n < 1 || n > 15 || ops->name[n])
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "name: does not match [a-z0-9-]{1,15}");
	if (ops->caps & ~known)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "caps: a bit that is not a DSEC_CAP_ flag");
	slot = missing_slot(ops);
	if (slot)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "%s: the required slot is NULL", slot);
	return 0;
}

int dsec_backend_register(const struct dsec_backend_ops *ops, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = check(ops, err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&register_lock); /* a plain mutex that is never destroyed: it cannot fail */
	r = -ENOSPC;
	if (dsec__backend_find(ops->name))
		r = -EEXIST;
	for (size_t i = 0; r == -ENOSPC && i < REGISTERED_MAX; i++) {
		if (!atomic_load(&registered[i])) {
			atomic_store(&registered[i], ops);
			r = 0;
		}
	}
	(void)pthread_mutex_unlock(&register_lock);
	if (r == -EEXIST)
		return dsec__fail(err, r, DSEC_STEP_OPTIONS, "name: \"%s\" is registered", ops->name);
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_OPTIONS, "%d backends are registered", REGISTERED_MAX) : 0;
}

void *dsec_backend_data(const struct dsec_sandbox *sandbox)
{
	return sandbox->data;
}

void dsec_backend_set_data(struct dsec_sandbox *sandbox, void *data)
{
	sandbox->data = data;
}

int dsec_backend_forked(const struct dsec_sandbox *sandbox)
{
	return sandbox->node->owner != getpid();
}
