/* SPDX-License-Identifier: MIT */
/* Directories, names and id ranges of sandboxes. See state.h for what a lock on a keeper file means. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../linux/cgroup.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"

#define NEW_PREFIX ".new-"
#define SPEC_MAX (2u << 20) /* bytes; a create is at most 1 MiB */
#define HALF_MADE_S 60 /* a .new- directory without a keeper file and older than this belongs to nobody */

void dsec__id_new(char ret_id[DSEC__ID_LEN + 1])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t bits[20];

	while (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
		; /* EINTR before the pool is ready, at boot */
	memcpy(ret_id, "dsec-", 5);
	for (int i = 0; i < 20; i++)
		ret_id[5 + i] = digits[bits[i] & 31];
	ret_id[DSEC__ID_LEN] = 0;
}

bool dsec__name_ok(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");

	return n >= 1 && n <= 63 && !name[n] && name[0] != '.' && name[0] != '_' && name[0] != '-';
}

/*
 * The keeper file's locks: the keeper holds one byte while it lives, a reaper another while it works. Of open files, not
 * of processes, and tested without being taken: who looks disturbs nobody.
 */
enum { BYTE_LIFE, BYTE_REAP };

static int lock_byte(int fd, int byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

/* 1, 0 or -errno. */
static int is_locked(int fd, int byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_GETLK, &l) < 0 ? -errno : l.l_type != F_UNLCK;
}

/* The first line says whose it is, the others where its control groups are: <hierarchy> <directory>. */
static int keeper_write(const struct dsec__sbdir *d, int32_t slot, struct dsec_error *err)
{
	char text[64 + DSEC__CG_MAX * 272];
	int n = snprintf(text, sizeof text, "%d %d %016llx\n", getpid(), slot, (unsigned long long)d->nonce);

	for (int i = 0; d->cgroot && i < DSEC__CG_MAX; i++)
		if (d->cgroot->fd[i] >= 0)
			n += snprintf(text + n, sizeof text - (size_t)n, "%d %s\n", i, d->cgroot->path[i]);
	if (pwrite(d->lock, text, (size_t)n, 0) != n)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "write keeper file of \"%s\"", d->id);
	return 0;
}

/* The keeper file says which slot is ours before the slot does: a crash in between leaves nothing that cannot be told. */
static int slot_claim(struct dsec__state *st, struct dsec__sbdir *d, struct dsec_error *err)
{
	for (uint32_t i = 0; i < DSEC__SLOTS; i++) {
		uint64_t none = 0;
		int r;

		if (atomic_load_explicit(&st->shm->slots[i], memory_order_relaxed))
			continue;
		r = keeper_write(d, (int32_t)i, err);
		if (r < 0)
			return r;
		if (atomic_compare_exchange_strong(&st->shm->slots[i], &none, d->nonce)) {
			d->slot = (int32_t)i;
			return 0;
		}
	}
	return dsec__fail_retry(err, -EAGAIN, DSEC_STEP_IDS, "all %u id ranges of this node are in use", DSEC__SLOTS);
}

/*
 * Who claims or frees a name looks at its owner first and holds this lock meanwhile. On a description of its own: keepers
 * inherit names_fd by fork, and a lock on it would be all of theirs.
 */
static int names_lock(const struct dsec__state *st)
{
	AUTO_CLOSE int fd = openat(st->names_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

/* Whether a keeper of that id lives, its directory finished or not: 1, 0 or -errno. */
static int is_alive(const struct dsec__state *st, const char *id)
{
	char path[sizeof NEW_PREFIX + DSEC__ID_LEN];
	int r = 0;

	/* Under its first name first: it can be renamed meanwhile, but not back. */
	for (int made = 0; made < 2 && r == 0; made++) {
		AUTO_CLOSE int dir = -EBADF;

		(void)snprintf(path, sizeof path, "%s%s", made ? "" : NEW_PREFIX, id); /* fits */
		dir = openat(st->sb_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (dir >= 0)
			r = dsec__sbdir_alive(dir);
		else if (errno != ENOENT)
			r = -errno;
	}
	return r;
}

static int name_claim(struct dsec__state *st, struct dsec__sbdir *d, const char *name, struct dsec_error *err)
{
	AUTO_CLOSE int lock = names_lock(st);
	char other[DSEC__ID_LEN + 1];
	ssize_t n;
	int r;

	if (lock < 0)
		return dsec__fail(err, lock, DSEC_STEP_NAME, "lock the names");
	n = readlinkat(st->names_fd, name, other, sizeof other);
	if (n == DSEC__ID_LEN) {
		other[n] = 0;
		r = is_alive(st, other);
		if (r > 0)
			return dsec__fail(err, -EEXIST, DSEC_STEP_NAME, "name: \"%s\" is in use", name);
		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_NAME, "name: ask whether \"%s\" is in use", name);
	}
	if (n >= 0)
		(void)unlinkat(st->names_fd, name, 0); /* a dead sandbox's, or of no one */
	if (symlinkat(d->id, st->names_fd, name) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NAME, "name \"%s\"", name);
	d->named = true;
	return 0;
}

int dsec__sbdir_describe(struct dsec__state *st, struct dsec__sbdir *d, const struct dsec__spec *spec,
			 struct dsec_error *err)
{
	AUTO_CLOSE int file = openat(d->fd, "spec", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct dsec__buf b = { 0 };
	int r;

	dsec__spec_encode(&b, spec);
	r = file < 0 ? -errno : b.failed ? -ENOMEM : dsec__write_all(file, b.data, b.len);
	dsec__buf_done(&b);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_NODE, "write spec of \"%s\"", d->id);
	return spec->name ? name_claim(st, d, spec->name, err) : 0;
}

/* The file is locked before it has its name: a reaper that finds it unlocked may rely on its owner's death. */
static int fill(struct dsec__state *st, bool want_slot, struct dsec__sbdir *d, struct dsec_error *err)
{
	int r;

	d->lock = openat(d->fd, "keeper.new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (d->lock < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "create the keeper file of \"%s\"", d->id);
	r = lock_byte(d->lock, BYTE_LIFE);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_NODE, "lock the keeper file of \"%s\"", d->id);
	if (renameat(d->fd, "keeper.new", d->fd, "keeper") < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "rename the keeper file of \"%s\"", d->id);
	return want_slot ? slot_claim(st, d, err) : keeper_write(d, -1, err);
}

int dsec__sbdir_create(struct dsec__state *st, const char *id, const struct dsec__cgroot *cgroot, bool want_slot,
		       struct dsec__sbdir *ret_dir, struct dsec_error *err)
{
	struct dsec__sbdir d = { .fd = -EBADF, .lock = -EBADF, .slot = -1, .cgroot = cgroot };
	char path[DSEC__ID_LEN + 8];
	int r;

	memcpy(d.id, id, DSEC__ID_LEN);
	while (!d.nonce)
		if (getrandom(&d.nonce, sizeof d.nonce, 0) < 0 && errno != EINTR)
			return dsec__fail(err, -errno, DSEC_STEP_NODE, "getrandom");
	(void)snprintf(path, sizeof path, NEW_PREFIX "%s", d.id); /* fits */
	if (mkdirat(st->sb_fd, path, 0700) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "mkdir \"%s/sb/%s\"", st->root, path);
	d.fd = openat(st->sb_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.fd < 0)
		r = dsec__fail(err, -errno, DSEC_STEP_NODE, "open \"%s/sb/%s\"", st->root, path);
	else
		r = fill(st, want_slot, &d, err);
	if (r < 0) {
		dsec__sbdir_remove(st, &d, NULL);
		return r;
	}
	*ret_dir = d;
	return 0;
}

int dsec__sbdir_publish(struct dsec__state *st, const struct dsec__sbdir *d, struct dsec_error *err)
{
	char path[DSEC__ID_LEN + 8];

	(void)snprintf(path, sizeof path, NEW_PREFIX "%s", d->id); /* fits */
	if (renameat(st->sb_fd, path, st->sb_fd, d->id) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "publish \"%s/sb/%s\"", st->root, d->id);
	return 0;
}

static void slot_free(struct dsec__state *st, int32_t slot, uint64_t nonce)
{
	if (slot >= 0 && (uint32_t)slot < DSEC__SLOTS && nonce)
		(void)atomic_compare_exchange_strong(&st->shm->slots[slot], &nonce, 0); /* only if it is still ours */
}

/* Only if it is still that id's. Without the lock (no descriptor is free) it is left to the next reap. */
static void name_free(struct dsec__state *st, const char *name, const char *id)
{
	AUTO_CLOSE int lock = names_lock(st);
	char owner[DSEC__ID_LEN + 1];
	ssize_t n = readlinkat(st->names_fd, name, owner, sizeof owner);

	if (lock >= 0 && n == DSEC__ID_LEN && memcmp(owner, id, DSEC__ID_LEN) == 0)
		(void)unlinkat(st->names_fd, name, 0);
}

static void remove_dir(struct dsec__state *st, const char *id)
{
	char path[DSEC__ID_LEN + 8];

	(void)snprintf(path, sizeof path, NEW_PREFIX "%s", id); /* fits */
	(void)dsec__remove_tree(st->sb_fd, id);   /* what stays is found by the next reap */
	(void)dsec__remove_tree(st->sb_fd, path);
}

void dsec__sbdir_remove(struct dsec__state *st, struct dsec__sbdir *d, const char *name)
{
	if (d->named && name)
		name_free(st, name, d->id);
	remove_dir(st, d->id);
	slot_free(st, d->slot, d->nonce);
	dsec__closep(&d->lock);
	dsec__closep(&d->fd);
}

int dsec__sbdir_find(struct dsec__state *st, const char *id_or_name, char ret_id[DSEC__ID_LEN + 1],
		     struct dsec_error *err)
{
	char id[DSEC__ID_LEN + 1];
	ssize_t n;
	int fd;

	if (!dsec__name_ok(id_or_name))
		return dsec__fail(err, -EINVAL, DSEC_STEP_NAME, "id: neither an id nor a name");
	n = readlinkat(st->names_fd, id_or_name, id, sizeof id);
	if (n == DSEC__ID_LEN)
		id[n] = 0;
	else if (strlen(id_or_name) == DSEC__ID_LEN)
		memcpy(id, id_or_name, sizeof id);
	else
		return dsec__fail(err, -ENOENT, DSEC_STEP_NAME, "no sandbox is named \"%s\"", id_or_name);
	fd = openat(st->sb_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NAME,
				  errno == ENOENT ? "no sandbox \"%s\"" : "open the directory of \"%s\"", id_or_name);
	memcpy(ret_id, id, sizeof id);
	return fd;
}

int dsec__sbdir_alive(int dir_fd)
{
	AUTO_CLOSE int file = openat(dir_fd, "keeper", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (file < 0)
		return errno == ENOENT ? 0 : -errno;
	return is_locked(file, BYTE_LIFE);
}

int dsec__sbdir_spec(int dir_fd, struct dsec__buf *buf, struct dsec__spec *ret_spec)
{
	AUTO_CLOSE int fd = openat(dir_fd, "spec", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat sb;
	ssize_t n;

	if (fd < 0 || fstat(fd, &sb) < 0)
		return -errno;
	if (sb.st_size > SPEC_MAX)
		return -EBADMSG;
	if (!dsec__buf_reserve(buf, (size_t)sb.st_size + 1))
		return -ENOMEM;
	n = read(fd, buf->data, (size_t)sb.st_size);
	if (n < 0)
		return -errno;
	buf->len = (size_t)n;
	return dsec__spec_decode(ret_spec, buf->data, buf->len);
}

/* What a keeper file tells; slot -1 when it is absent or says so. The groups are opened when ret_groups is given. */
static int32_t keeper_read(int dir_fd, int32_t *ret_slot, uint64_t *ret_nonce, struct dsec__cgroot *ret_groups)
{
	AUTO_CLOSE int fd = openat(dir_fd, "keeper", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[64 + DSEC__CG_MAX * 272];
	unsigned long long nonce = 0;
	int pid = 0, slot = -1;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	char *rest, *line;

	text[n > 0 ? n : 0] = 0;
	line = strtok_r(text, "\n", &rest);
	if (!line || sscanf(line, "%d %d %llx", &pid, &slot, &nonce) != 3)
		slot = -1;
	*ret_slot = slot;
	*ret_nonce = nonce;
	while (line && ret_groups && (line = strtok_r(NULL, "\n", &rest))) {
		int i = line[0] - '0';

		if (i >= 0 && i < DSEC__CG_MAX && line[1] == ' ' && ret_groups->fd[i] < 0)
			ret_groups->fd[i] = open(line + 2, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	}
	return pid;
}

int32_t dsec__sbdir_keeper_pid(int dir_fd)
{
	uint64_t nonce;
	int32_t slot;

	return keeper_read(dir_fd, &slot, &nonce, NULL);
}

/* Its keeper may have lived in other control groups than this process does: the keeper file says where they are. */
static int reap_groups(int dir_fd, const char *id, int32_t *ret_slot, uint64_t *ret_nonce)
{
	struct dsec__cgroot groups = { 0 };
	int r;

	for (int i = 0; i < DSEC__CG_MAX; i++)
		groups.fd[i] = -EBADF;
	(void)keeper_read(dir_fd, ret_slot, ret_nonce, &groups);
	r = dsec__cgroup_reap(&groups, id, 1000);
	dsec__cgroot_close(&groups);
	return r;
}

/*
 * Takes the reaper's lock of a dead sandbox: its keeper file, or -ENOENT for a directory that was never filled and is old.
 * All else, -EBUSY too, means hands off: what could not be asked may live.
 */
static int lock_dead(int dir_fd, bool half_made)
{
	AUTO_CLOSE int file = openat(dir_fd, "keeper", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat sb;
	int r;

	if (file < 0 && errno != ENOENT)
		return -errno;
	if (file < 0) {
		if (fstat(dir_fd, &sb) < 0)
			return -errno;
		return half_made && time(NULL) - sb.st_mtime <= HALF_MADE_S ? -EBUSY : -ENOENT;
	}
	r = lock_byte(file, BYTE_REAP);
	if (r == 0)
		r = is_locked(file, BYTE_LIFE) ? -EBUSY : 0;
	return r < 0 ? r : TAKE_FD(file);
}

static bool reap_one(struct dsec__state *st, const char *entry)
{
	bool half_made = strncmp(entry, NEW_PREFIX, strlen(NEW_PREFIX)) == 0;
	const char *id = half_made ? entry + strlen(NEW_PREFIX) : entry;
	AUTO_CLOSE int dir = openat(st->sb_fd, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	AUTO_CLOSE int lock = dir < 0 ? -errno : lock_dead(dir, half_made);
	struct dsec__buf buf = { 0 };
	struct dsec__spec spec;
	uint64_t nonce;
	int32_t slot;

	if (strlen(id) != DSEC__ID_LEN || dir < 0 || (lock < 0 && lock != -ENOENT))
		return false;
	if (reap_groups(dir, id, &slot, &nonce) < 0)
		return false; /* something of it still dies: the next reap finds it */
	if (dsec__sbdir_spec(dir, &buf, &spec) == 0) {
		if (spec.name)
			name_free(st, spec.name, id);
		dsec__spec_done(&spec);
	}
	dsec__buf_done(&buf);
	if (dsec__remove_tree(st->sb_fd, entry) < 0)
		return false;
	slot_free(st, slot, nonce);
	atomic_fetch_add(&st->shm->reaped, 1);
	dsec__log(DSEC_LOG_WARNING, "removed what dead sandbox \"%s\" left in \"%s\"", id, st->root);
	return true;
}

/* Names whose sandbox is nowhere, where their removal failed. */
static void reap_names(struct dsec__state *st)
{
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(st->names_fd, ".");

	/* If it cannot be read, the next reap does. A directory has its first name when a name is claimed. */
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[sizeof NEW_PREFIX + DSEC__ID_LEN] = NEW_PREFIX;
		char *id = path + strlen(NEW_PREFIX);
		ssize_t n = e->d_name[0] == '.' ? -1 : readlinkat(st->names_fd, e->d_name, id, DSEC__ID_LEN);

		if (n == DSEC__ID_LEN && faccessat(st->sb_fd, path, F_OK, 0) < 0 && errno == ENOENT &&
		    faccessat(st->sb_fd, id, F_OK, 0) < 0 && errno == ENOENT)
			name_free(st, e->d_name, id);
	}
}

int dsec__state_reap(struct dsec__state *st, struct dsec_error *err)
{
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(st->sb_fd, ".");
	int n = 0;

	if (!dir)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "read \"%s/sb\"", st->root);
	for (struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			n += reap_one(st, e->d_name);
	reap_names(st);
	return n;
}

bool dsec__sbdir_remains(const struct dsec__state *st, const char *id)
{
	char path[sizeof NEW_PREFIX + DSEC__ID_LEN] = NEW_PREFIX;

	(void)snprintf(path, sizeof path, NEW_PREFIX "%s", id); /* fits */
	return faccessat(st->sb_fd, path, F_OK, 0) == 0 || errno != ENOENT || faccessat(st->sb_fd, id, F_OK, 0) == 0 ||
	       errno != ENOENT;
}
