/* SPDX-License-Identifier: MIT */
/* Options: the rule of sized structures, and one check per field, in the order of the header, naming the field. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "../util/error.h"
#include "core.h"

#define ENV_MAX 4096u /* variables */
#define MEMORY_MIN (8ull << 20)
#define WORKDIR_MAX 4000u /* bytes; leaves room below PATH_MAX for what is put before it */
#define HOSTNAME_MAX 64u

int dsec__opts_copy(void *dst, size_t dst_size, const void *src, const char *what, struct dsec_error *err)
{
	size_t sz = dst_size;

	memset(dst, 0, dst_size);
	if (!src) {
		memcpy(dst, &dst_size, sizeof dst_size);
		return 0;
	}
	memcpy(&sz, src, sizeof sz);
	if (sz < sizeof(size_t) + sizeof(uint64_t))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: %zu is too small for %s", sz, what);
	for (size_t i = dst_size; i < sz; i++)
		if (((const uint8_t *)src)[i])
			return dsec__fail(err, -E2BIG, DSEC_STEP_OPTIONS,
					  "sz: %s has a field set that this library does not know", what);
	memcpy(dst, src, sz < dst_size ? sz : dst_size);
	return 0;
}

static int refuse(struct dsec_error *err, const char *field, const char *why)
{
	return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "%s: %s", field, why);
}

static int check_env(const char *const *env, struct dsec_error *err)
{
	for (size_t n = 0; env && env[n]; n++) {
		const char *eq = strchr(env[n], '=');

		if (n >= ENV_MAX)
			return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "env: more than %u variables", ENV_MAX);
		if (!eq || eq == env[n])
			return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "env: entry %zu is not NAME=value", n);
	}
	return 0;
}

static int check_workdir(const char *workdir, struct dsec_error *err)
{
	if (!workdir)
		return 0;
	if (workdir[0] != '/')
		return refuse(err, "workdir", "not an absolute path");
	if (strlen(workdir) > WORKDIR_MAX)
		return refuse(err, "workdir", "over 4000 bytes");
	/* /proc/self/fd/N as a working directory is how a leaked descriptor becomes the host's root. */
	if (strncmp(workdir, "/proc/", 6) == 0 || strcmp(workdir, "/proc") == 0)
		return refuse(err, "workdir", "lies in /proc");
	return 0;
}

static int check_user(const char *user, struct dsec_error *err)
{
	uint32_t uid, gid;

	if (user && dsec__user_parse(user, &uid, &gid) < 0)
		return refuse(err, "user", "neither \"root\" nor uid or uid:gid in decimal below 65536");
	return 0;
}

static int check_hostname(const char *name, struct dsec_error *err)
{
	size_t n;

	if (!name)
		return 0;
	n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
	if (n < 1 || n > HOSTNAME_MAX || name[n])
		return refuse(err, "hostname", "not 1 to 64 letters, digits, dots or dashes");
	return 0;
}

static int check_image(const char *image, struct dsec_error *err)
{
	if (!image || strcmp(image, "host") == 0)
		return 0;
	if (image[0] != '/')
		return refuse(err, "image", "neither \"host\" nor an absolute path");
	if (strlen(image) >= PATH_MAX - 16)
		return refuse(err, "image", "path too long");
	if (strstr(image, "/../") || (strlen(image) >= 3 && strcmp(image + strlen(image) - 3, "/..") == 0))
		return refuse(err, "image", "has a \"..\" in its path");
	return 0;
}

static int check_limits(const struct dsec_sandbox_opts *o, struct dsec_error *err)
{
	if (o->cpu_millis && (o->cpu_millis < 10 || o->cpu_millis > 1000000))
		return refuse(err, "cpu_millis", "not 0 or from 10 to 1000000");
	if (o->memory_bytes && o->memory_bytes < MEMORY_MIN)
		return refuse(err, "memory_bytes", "below 8 MiB");
	if (o->memory_bytes > INT64_MAX)
		return refuse(err, "memory_bytes", "over 2^63 - 1");
	if (o->pids > 4194304)
		return refuse(err, "pids", "over 4194304");
	if (o->disk_bytes && o->disk_bytes < 64 << 10)
		return refuse(err, "disk_bytes", "below 64 KiB");
	if (o->disk_bytes > INT64_MAX)
		return refuse(err, "disk_bytes", "over 2^63 - 1");
	if (o->disk_inodes && o->disk_inodes < 32)
		return refuse(err, "disk_inodes", "below 32");
	if (o->network > DSEC_NETWORK_HOST)
		return refuse(err, "network", "not a DSEC_NETWORK_ value");
	if (o->top > DSEC_TOP_DISK)
		return refuse(err, "top", "not a DSEC_TOP_ value");
	if (o->top == DSEC_TOP_DISK && (o->disk_bytes || o->disk_inodes) && !(o->flags & DSEC_SANDBOX_LIMITS_OPTIONAL))
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS,
				  "%s: cannot be enforced with DSEC_TOP_DISK; use DSEC_TOP_MEMORY",
				  o->disk_bytes ? "disk_bytes" : "disk_inodes");
	return 0;
}

int dsec__sandbox_opts_check(struct dsec_sandbox_opts *o, const struct dsec_sandbox_opts *given, struct dsec_error *err)
{
	const uint64_t known = DSEC_SANDBOX_RETAIN | DSEC_SANDBOX_NOWAIT | DSEC_SANDBOX_LIMITS_OPTIONAL;
	int r = dsec__opts_copy(o, sizeof *o, given, "struct dsec_sandbox_opts", err);

	if (r < 0)
		return r;
	if (o->flags & ~known)
		return refuse(err, "flags", "a bit that is not a DSEC_SANDBOX_ flag");
	if (o->name && !dsec__name_ok(o->name))
		return refuse(err, "name", "does not match [a-z0-9][a-z0-9._-]{0,62}");
	if (o->name && strlen(o->name) == DSEC__ID_LEN && strncmp(o->name, "dsec-", 5) == 0)
		return refuse(err, "name", "has the form of an id");
	if (o->run && !dsec__name_ok(o->run))
		return refuse(err, "run", "does not match [a-z0-9][a-z0-9._-]{0,62}");
	r = check_image(o->image, err);
	if (r == 0)
		r = check_hostname(o->hostname, err);
	if (r == 0)
		r = check_workdir(o->workdir, err);
	if (r == 0)
		r = check_user(o->user, err);
	if (r == 0)
		r = check_env(o->env, err);
	return r < 0 ? r : check_limits(o, err);
}

static int check_argv(const char *const argv[], uint32_t kind, struct dsec_error *err)
{
	if (!argv || !argv[0])
		return refuse(err, "argv", "is empty");
	if (!argv[0][0])
		return refuse(err, "argv", "argv[0] is an empty string");
	if (kind != DSEC_EXEC_COMMAND && argv[1])
		return refuse(err, "argv", "a file transfer takes one path");
	return 0;
}

int dsec__exec_opts_check(struct dsec_exec_opts *o, const char *const argv[], const struct dsec_exec_opts *given,
			  struct dsec_error *err)
{
	const uint64_t known = DSEC_EXEC_STDIN | DSEC_EXEC_TTY | DSEC_EXEC_STREAM | DSEC_EXEC_LIMIT_KILLS |
			       DSEC_EXEC_CLEAN_ENV;
	int r = dsec__opts_copy(o, sizeof *o, given, "struct dsec_exec_opts", err);

	if (r < 0)
		return r;
	if (o->flags & ~known)
		return refuse(err, "flags", "a bit that is not a DSEC_EXEC_ flag");
	if (o->kind > DSEC_EXEC_FILE_WRITE)
		return refuse(err, "kind", "not a DSEC_EXEC_ kind");
	r = check_argv(argv, o->kind, err);
	if (r < 0)
		return r;
	if (o->kind != DSEC_EXEC_COMMAND && o->flags & DSEC_EXEC_TTY)
		return refuse(err, "flags", "a file transfer has no terminal");
	if (o->mode & ~07777u)
		return refuse(err, "mode", "more than permission bits");
	if (o->stdin_len && !o->stdin_data)
		return refuse(err, "stdin_data", "is NULL while stdin_len is not 0");
	if (o->timeout_ms > INT64_MAX / 2)
		return refuse(err, "timeout_ms", "too large");
	if (o->output_limit > (1ull << 40))
		return refuse(err, "output_limit", "over 1 TiB");
	if (o->flags & DSEC_EXEC_STREAM && o->flags & DSEC_EXEC_LIMIT_KILLS)
		return refuse(err, "flags", "DSEC_EXEC_STREAM has no limit that could kill");
	if (o->reserved)
		return refuse(err, "reserved", "is not 0");
	r = check_env(o->env, err);
	if (r == 0)
		r = check_workdir(o->workdir, err);
	return r < 0 ? r : check_user(o->user, err);
}
