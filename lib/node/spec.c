/* SPDX-License-Identifier: MIT */
/* Encoding of specs and requests. Decoders read what other processes and files hold and trust none of it. */
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_VERSION 1u

void dsec__spec_encode(struct dsec__buf *b, const struct dsec__spec *s)
{
	dsec__put_u32(b, SPEC_VERSION);
	dsec__put_str(b, s->id);
	dsec__put_str(b, s->backend);
	dsec__put_str(b, s->image);
	dsec__put_str(b, s->name);
	dsec__put_str(b, s->run);
	dsec__put_str(b, s->hostname);
	dsec__put_str(b, s->workdir);
	dsec__put_strv(b, (const char *const *)s->env);
	dsec__put_u64(b, s->flags);
	dsec__put_u64(b, s->cpu_millis);
	dsec__put_u64(b, s->memory_bytes);
	dsec__put_u64(b, s->pids);
	dsec__put_u64(b, s->disk_bytes);
	dsec__put_u64(b, s->disk_inodes);
	dsec__put_u64(b, s->created_ns);
	dsec__put_u32(b, s->uid);
	dsec__put_u32(b, s->gid);
	dsec__put_u32(b, s->network);
	dsec__put_u32(b, s->top);
}

int dsec__spec_decode(struct dsec__spec *ret_spec, const void *data, size_t n)
{
	struct dsec__reader r = { .p = data, .left = n };
	struct dsec__spec s = { 0 };

	if (dsec__get_u32(&r) != SPEC_VERSION)
		return -EBADMSG;
	s.id = dsec__get_str(&r);
	s.backend = dsec__get_str(&r);
	s.image = dsec__get_str(&r);
	s.name = dsec__get_str(&r);
	s.run = dsec__get_str(&r);
	s.hostname = dsec__get_str(&r);
	s.workdir = dsec__get_str(&r);
	s.env = dsec__get_strv(&r);
	s.flags = dsec__get_u64(&r);
	s.cpu_millis = dsec__get_u64(&r);
	s.memory_bytes = dsec__get_u64(&r);
	s.pids = dsec__get_u64(&r);
	s.disk_bytes = dsec__get_u64(&r);
	s.disk_inodes = dsec__get_u64(&r);
	s.created_ns = dsec__get_u64(&r);
	s.uid = dsec__get_u32(&r);
	s.gid = dsec__get_u32(&r);
	s.network = dsec__get_u32(&r);
	s.top = dsec__get_u32(&r);
	if (r.bad || r.left || !s.id || strlen(s.id) != DSEC__ID_LEN || !s.backend || !s.image || !s.hostname ||
	    !s.workdir) {
		free(s.env);
		return r.no_memory ? -ENOMEM : -EBADMSG;
	}
	*ret_spec = s;
	return 0;
}

void dsec__spec_done(struct dsec__spec *s)
{
	free(s->env);
	s->env = NULL;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool dsec__spec_same_shape(const struct dsec__spec *a, const struct dsec__spec *b)
{
	size_t n = 0;

	while (a->env[n] && b->env[n] && strcmp(a->env[n], b->env[n]) == 0)
		n++;
	return !a->env[n] && !b->env[n] && same(a->backend, b->backend) && same(a->image, b->image) &&
	       !a->cpu_millis == !b->cpu_millis && !a->memory_bytes == !b->memory_bytes && !a->pids == !b->pids &&
	       same(a->hostname, b->hostname) && same(a->workdir, b->workdir) && a->disk_bytes == b->disk_bytes &&
	       a->disk_inodes == b->disk_inodes && a->uid == b->uid && a->gid == b->gid && a->network == b->network &&
	       a->top == b->top;
}

void dsec__request_encode(struct dsec__buf *b, const struct dsec__request *q)
{
	dsec__put_u32(b, q->kind);
	dsec__put_u32(b, q->mode);
	dsec__put_u64(b, q->flags);
	dsec__put_u64(b, q->timeout_ms);
	dsec__put_u64(b, q->output_limit);
	dsec__put_u32(b, q->uid);
	dsec__put_u32(b, q->gid);
	dsec__put_u16(b, q->rows);
	dsec__put_u16(b, q->cols);
	dsec__put_str(b, q->workdir);
	dsec__put_strv(b, (const char *const *)q->argv);
	dsec__put_strv(b, (const char *const *)q->env);
	dsec__put_bytes(b, q->input, q->input_len);
}

int dsec__request_decode(struct dsec__request *ret_request, const void *data, size_t n)
{
	struct dsec__reader r = { .p = data, .left = n };
	struct dsec__request q = { 0 };

	q.kind = dsec__get_u32(&r);
	q.mode = dsec__get_u32(&r);
	q.flags = dsec__get_u64(&r);
	q.timeout_ms = dsec__get_u64(&r);
	q.output_limit = dsec__get_u64(&r);
	q.uid = dsec__get_u32(&r);
	q.gid = dsec__get_u32(&r);
	q.rows = dsec__get_u16(&r);
	q.cols = dsec__get_u16(&r);
	q.workdir = dsec__get_str(&r);
	q.argv = dsec__get_strv(&r);
	q.env = dsec__get_strv(&r);
	q.input = dsec__get_bytes(&r, &q.input_len);
	if (r.bad || r.left || !q.argv[0]) {
		dsec__request_done(&q);
		return r.no_memory ? -ENOMEM : -EBADMSG;
	}
	*ret_request = q;
	return 0;
}

void dsec__request_done(struct dsec__request *q)
{
	free(q->argv);
	free(q->env);
	q->argv = q->env = NULL;
}

/* strtoul would take signs, spaces and values past the end: a name that is nearly a number must not become root. */
static int id_parse(const char **p, uint32_t *ret_id)
{
	uint32_t id = 0;
	const char *s = *p;

	if (*s == '0' && s[1] >= '0' && s[1] <= '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++) {
		id = id * 10 + (uint32_t)(*s - '0');
		if (id > 65535)
			return -EINVAL;
	}
	if (s == *p)
		return -EINVAL;
	*p = s;
	*ret_id = id;
	return 0;
}

int dsec__user_parse(const char *user, uint32_t *ret_uid, uint32_t *ret_gid)
{
	uint32_t uid = 0, gid = 0;

	if (strcmp(user, "root") != 0) {
		if (id_parse(&user, &uid) < 0)
			return -EINVAL;
		gid = uid;
		if (*user == ':') {
			user++;
			if (id_parse(&user, &gid) < 0)
				return -EINVAL;
		}
		if (*user)
			return -EINVAL;
	}
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}
