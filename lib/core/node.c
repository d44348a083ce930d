/* SPDX-License-Identifier: MIT */
/* The node: opening, closing, listing, counting, reaping. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../linux/probe.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"
#include "core.h"

int dsec_node_open(struct dsec_node **ret_node, const struct dsec_node_opts *opts, struct dsec_error *err)
{
	KEEP_ERRNO;
	AUTO_FREE struct dsec_node *node = calloc(1, sizeof *node);
	struct dsec_node_opts o;
	int r;

	if (!ret_node)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "ret_node: is NULL");
	if (!node)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "a node handle");
	r = dsec__opts_copy(&o, sizeof o, opts, "struct dsec_node_opts", err);
	if (r < 0)
		return r;
	if (o.flags)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "flags: none is known here");
	node->owner = getpid();
	r = dsec__state_paths(&node->state, o.root, o.images, err);
	if (r == 0)
		r = dsec__state_open(&node->state, err);
	if (r < 0)
		return r;
	r = dsec__state_reap(&node->state, err);
	if (r >= 0)
		r = node->launcher = dsec__launcher_start(&node->state, &node->has_ids, err);
	if (r < 0) {
		dsec__state_close(&node->state);
		return r;
	}
	dsec__log(DSEC_LOG_DEBUG, "opened node \"%s\", images in \"%s\"%s", node->state.root, node->state.images,
		  node->has_ids ? "" : "; sandboxes have no ids of their own");
	*ret_node = TAKE_PTR(node);
	return 0;
}

void dsec_node_close(struct dsec_node *node)
{
	KEEP_ERRNO;
	if (!node)
		return;
	if (node->owner == getpid())
		(void)shutdown(node->launcher, SHUT_RDWR); /* a forked process may hold a copy */
	dsec__closep(&node->launcher);
	dsec__state_close(&node->state);
	free(node);
}

int dsec_node_probe(struct dsec_node *node, struct dsec_probe_item *items, size_t n_items, size_t item_sz,
		    struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = node ? dsec__owner_check(node, err) : 0;

	return r < 0 ? r : dsec__probe(node ? node->state.root : NULL, node ? node->state.images : NULL, items, n_items, item_sz,
			   err);
}

static void copy_text(char *dst, size_t size, const char *src)
{
	(void)snprintf(dst, size, "%s", src ? src : ""); /* a longer one is cut, as the header says */
}

static bool info_read(struct dsec_node *node, const char *id, struct dsec_sandbox_info *ret)
{
	AUTO_CLOSE int dir = openat(node->state.sb_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct dsec__buf buf = { 0 };
	struct dsec__spec s;
	bool ok = dir >= 0 && dsec__sbdir_spec(dir, &buf, &s) == 0;

	if (ok) {
		*ret = (struct dsec_sandbox_info){ .created_ns = s.created_ns };
		copy_text(ret->id, sizeof ret->id, s.id);
		copy_text(ret->name, sizeof ret->name, s.name);
		copy_text(ret->run, sizeof ret->run, s.run);
		copy_text(ret->backend, sizeof ret->backend, s.backend);
		copy_text(ret->image, sizeof ret->image, s.image);
		ret->keeper_pid = dsec__sbdir_keeper_pid(dir);
		ret->state = dsec__sbdir_alive(dir) ? DSEC_STATE_RUNNING : DSEC_STATE_LOST; /* in doubt it lives */
		dsec__spec_done(&s);
	}
	dsec__buf_done(&buf);
	return ok;
}

static int by_age(const void *a, const void *b)
{
	const struct dsec_sandbox_info *x = a, *y = b;

	return x->created_ns < y->created_ns ? -1 : x->created_ns > y->created_ns;
}

/* All of them, in an array that the caller frees. */
static int list_all(struct dsec_node *node, struct dsec_sandbox_info **ret_all, size_t *ret_n, struct dsec_error *err)
{
	AUTO_FREE struct dsec_sandbox_info *all = NULL;
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(node->state.sb_fd, ".");
	size_t n = 0, cap = 0;

	if (!dir)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "read \"%s/sb\"", node->state.root);
	for (struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue; /* being made, or no sandbox */
		if (n == cap) {
			struct dsec_sandbox_info *p = reallocarray(all, cap = cap ? 2 * cap : 64, sizeof *all);

			if (!p)
				return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "the list of sandboxes");
			all = p;
		}
		n += info_read(node, e->d_name, &all[n]);
	}
	if (n)
		qsort(all, n, sizeof *all, by_age);
	*ret_all = TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

int dsec_node_list(struct dsec_node *node, struct dsec_sandbox_info *infos, size_t n_infos, size_t info_sz,
		   struct dsec_error *err)
{
	KEEP_ERRNO;
	AUTO_FREE struct dsec_sandbox_info *all = NULL;
	size_t n = 0;
	int r = dsec__owner_check(node, err);

	if (r == 0 && n_infos && (!infos || !info_sz))
		r = dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "infos, info_sz: an array is needed for n_infos");
	if (r == 0)
		r = list_all(node, &all, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && i < n_infos; i++) {
		uint8_t *dst = (uint8_t *)infos + i * info_sz;

		memset(dst, 0, info_sz);
		memcpy(dst, &all[i], info_sz < sizeof all[i] ? info_sz : sizeof all[i]);
	}
	return (int)n;
}

int dsec_node_stats(struct dsec_node *node, struct dsec_node_stats *ret, struct dsec_error *err)
{
	KEEP_ERRNO;
	struct dsec__shm *shm = node->state.shm;
	struct dsec_node_stats s = { .sz = sizeof s };
	int r = dsec__owner_check(node, err);
	AUTO_FREE struct dsec_sandbox_info *all = NULL;
	size_t n = 0;

	if (r == 0 && (!ret || ret->sz < 2 * sizeof(size_t)))
		r = dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: too small for struct dsec_node_stats");
	if (r < 0)
		return r;
	r = list_all(node, &all, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		s.live += all[i].state != DSEC_STATE_LOST;
	s.created = atomic_load(&shm->created);
	s.create_failed = atomic_load(&shm->create_failed);
	s.execs = atomic_load(&shm->execs);
	s.reaped = atomic_load(&shm->reaped);
	for (size_t i = 0; node->has_ids && i < DSEC__SLOTS; i++)
		s.ids_free += atomic_load_explicit(&shm->slots[i], memory_order_relaxed) == 0;
	s.sz = ret->sz;
	memcpy(ret, &s, ret->sz < sizeof s ? ret->sz : sizeof s);
	return 0;
}

int dsec_node_reap(struct dsec_node *node, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = dsec__owner_check(node, err);

	return r < 0 ? r : dsec__state_reap(&node->state, err);
}
