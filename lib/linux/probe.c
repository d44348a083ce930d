/* SPDX-License-Identifier: MIT */
/*
 * The probe: one row for each thing, one small function for each row. A function finds out by trying, and says how it
 * did or why the thing is missing (why), and what follows and what to change (effect) where something does.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../node/state.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "attr.h"
#include "cgroup.h"
#include "trial.h"

/* What several rows ask about, found out once. */
struct facts {
	const char *root, *images;
	struct dsec__cgroot cgroot;
	struct dsec__trial trial;
};

static void set(struct dsec_probe_item *it, bool available, const char *effect, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Texts that are too long are cut: they are for people. */
static void set(struct dsec_probe_item *it, bool available, const char *effect, const char *fmt, ...)
{
	va_list ap;

	it->available = available;
	va_start(ap, fmt);
	(void)vsnprintf(it->why, sizeof it->why, fmt, ap);
	va_end(ap);
	(void)snprintf(it->effect, sizeof it->effect, "%s", effect);
}

/* The usual row: the result of a trial, 0 or -errno; the effect only where it failed. */
static void tried(struct dsec_probe_item *it, int r, const char *what, const char *effect)
{
	if (r < 0)
		set(it, false, effect, "%s: %s", what, strerror(-r));
	else
		set(it, true, "", "%s: works", what);
}

static void kernel(const struct facts *f, struct dsec_probe_item *it)
{
	struct utsname u;

	(void)f;
	(void)uname(&u); /* cannot fail with a good address */
	set(it, true, "", "%s %s %s", u.sysname, u.release, u.machine);
}

static void user_namespaces(const struct facts *f, struct dsec_probe_item *it)
{
	static const struct {
		const char *file;
		uint64_t bad;
		const char *why, *effect;
	} knobs[] = {
		{ "/proc/sys/user/max_user_namespaces", 0, "user.max_user_namespaces is 0",
		  "no containers; sysctl -w user.max_user_namespaces=100000" },
		{ "/proc/sys/kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone is 0",
		  "no containers for ordinary users; sysctl -w kernel.unprivileged_userns_clone=1, or be root" },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
		  "kernel.apparmor_restrict_unprivileged_userns is 1",
		  "no containers for ordinary users; set it to 0, give the program an AppArmor profile with "
		  "\"userns,\", or be root" },
	};

	if (f->trial.process == 0) {
		set(it, true, "", "a process was started in new user and mount namespaces%s",
		    f->trial.map < 0 ? "; what it can do is not known, since this process is not dumpable" : "");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(knobs); i++)
		if (dsec__attr_u64(AT_FDCWD, knobs[i].file) == knobs[i].bad) {
			set(it, false, knobs[i].effect, "clone: %s; %s", strerror(-f->trial.process), knobs[i].why);
			return;
		}
	tried(it, f->trial.process, "clone into new user and mount namespaces",
	      "no containers; around this process is perhaps another sandbox (its system call filter) or a limit");
}

static void id_ranges(const struct facts *f, struct dsec_probe_item *it)
{
	static const char effect[] =
		"inside a sandbox is one user, root, and it is the caller outside: sandboxes are not kept apart by "
		"their ids, and \"user\" is refused; be root, with all ids mapped";
	const unsigned long long last = DSEC__IDS_FIRST + (unsigned long long)DSEC__SLOTS * DSEC__IDS_PER_SLOT;
	unsigned long long inside;
	unsigned long long outside;
	unsigned long long count;
	bool mapped = false;
	FILE *map = fopen("/proc/self/uid_map", "re");

	(void)f;
	while (map && fscanf(map, "%llu %llu %llu", &inside, &outside, &count) == 3)
		mapped |= inside <= DSEC__IDS_FIRST && inside + count >= last;
	if (map)
		(void)fclose(map); /* only read */
	if (geteuid() != 0)
		set(it, false, effect, "not root");
	else if (prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */) != 1)
		set(it, false, effect, "root without CAP_SYS_ADMIN");
	else if (!mapped)
		set(it, false, effect, "ids %u to %llu are not mapped in this user namespace", DSEC__IDS_FIRST,
		    last - 1);
	else
		set(it, true, "", "root, and ids %u to %llu are mapped", DSEC__IDS_FIRST, last - 1);
}

static void cgroup(const struct facts *f, struct dsec_probe_item *it)
{
	const struct dsec__cgroot *g = &f->cgroot;
	bool v2 = g->fd[DSEC__CG_UNIFIED] >= 0;
	bool v1 = false;

	for (int i = DSEC__CG_CPU; i < DSEC__CG_MAX; i++)
		v1 |= g->fd[i] >= 0;
	if (v2 || v1)
		set(it, true, "", "%s; %s", v2 && v1 ? "v2 and v1 (hybrid)" : v2 ? "v2" : "v1",
		    g->path[v2 ? DSEC__CG_UNIFIED : g->exec >= 0 ? g->exec : DSEC__CG_MEMORY]);
	else
		set(it, false,
		    "no limits, and commands are ended by looking for their processes; be root, or have a group "
		    "delegated (systemd-run --user --scope -p Delegate=yes)",
		    "v2: %.100s; v1 pids: %.100s", g->why[DSEC__CG_UNIFIED], g->why[DSEC__CG_PIDS]);
}

static void limited(const struct facts *f, struct dsec_probe_item *it, int by, int v1, const char *field)
{
	const struct dsec__cgroot *g = &f->cgroot;
	char effect[sizeof it->effect];

	if (by >= 0) {
		set(it, true, "", "%s; %.200s", by == DSEC__CG_UNIFIED ? "v2" : "v1", g->path[by]);
		return;
	}
	(void)snprintf(effect, sizeof effect,
		       "a sandbox with %s is refused (-ENOTSUP), or goes without with DSEC_SANDBOX_LIMITS_OPTIONAL",
		       field);
	set(it, false, effect, "v2: %.100s; v1: %.100s",
	    g->why[DSEC__CG_UNIFIED][0] ? g->why[DSEC__CG_UNIFIED] : "has no such controller", g->why[v1]);
}

static void cgroup_cpu(const struct facts *f, struct dsec_probe_item *it)
{
	limited(f, it, f->cgroot.cpu, DSEC__CG_CPU, "cpu_millis");
}

static void cgroup_memory(const struct facts *f, struct dsec_probe_item *it)
{
	limited(f, it, f->cgroot.memory, DSEC__CG_MEMORY, "memory_bytes");
}

static void cgroup_pids(const struct facts *f, struct dsec_probe_item *it)
{
	limited(f, it, f->cgroot.pids, DSEC__CG_PIDS, "pids");
}

static void cgroup_exec(const struct facts *f, struct dsec_probe_item *it)
{
	const struct dsec__cgroot *g = &f->cgroot;

	if (g->exec >= 0)
		set(it, true, "", "each command has a group of its own; %s", g->path[g->exec]);
	else
		set(it, false,
		    "a process that left its command's session, lost its parent and cleared its environment is not "
		    "ended with the command, only with the sandbox",
		    "v2: %.100s; v1 pids: %.100s", g->why[DSEC__CG_UNIFIED], g->why[DSEC__CG_PIDS]);
}

static void cgroup_kill(const struct facts *f, struct dsec_probe_item *it)
{
	const char *effect =
		f->cgroot.exec < 0
			? "see cgroup_exec"
			: "processes are killed one by one until none is left, with forks forbidden meanwhile";
	int fd = f->cgroot.fd[DSEC__CG_UNIFIED];

	if (fd < 0)
		set(it, false, effect, "no v2 groups: %s", f->cgroot.why[DSEC__CG_UNIFIED]);
	else if (faccessat(fd, "cgroup.kill", F_OK, 0) < 0)
		set(it, false, effect, "no cgroup.kill (from Linux 5.14)");
	else
		set(it, true, "", "cgroup.kill");
}

static void overlay(const struct facts *f, struct dsec_probe_item *it)
{
	(void)f;
	tried(it, dsec__trial_overlay(), "overlay of descriptors, made as this user",
	      "root file systems are made inside each sandbox's user namespace (see overlay_user_namespace)");
}

static void overlay_user_namespace(const struct facts *f, struct dsec_probe_item *it)
{
	if (f->trial.process == 0 && f->trial.map < 0) {
		set(it, false, "not known; a program that did not change its user after it was executed can find out",
		    "mapping of ids: %s, since this process is not dumpable", strerror(-f->trial.map));
		return;
	}
	tried(it, f->trial.overlay, "overlay of descriptors in a user namespace",
	      "no containers for ordinary users; overlays in user namespaces came with Linux 5.11, of descriptors "
	      "with 6.13");
}

static void idmapped_mounts(const struct facts *f, struct dsec_probe_item *it)
{
	static const char effect[] =
		"no containers with id ranges over layers in that directory: move it to a file system that can (ext4, "
		"xfs, btrfs, erofs; tmpfs from Linux 6.3), or do not be root";
	const char *dirs[] = { "/usr", f->images };

	if (f->trial.userns_fd < 0) {
		set(it, false, effect, "no user namespace to map to (see user_namespaces)");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		int r = dirs[i] ? dsec__trial_idmap(dirs[i], f->trial.userns_fd) : 0;

		if (r < 0) {
			set(it, false, r == -EPERM ? "only sandboxes with id ranges need it (see id_ranges)" : effect,
			    "mount_setattr of a clone of \"%.150s\": %s", dirs[i], strerror(-r));
			return;
		}
	}
	set(it, true, "", "mount_setattr of a clone of \"/usr\"%s%.150s", f->images ? " and of " : "",
	    f->images ? f->images : "");
}

static void erofs_files(const struct facts *f, struct dsec_probe_item *it)
{
	tried(it, dsec__trial_erofs(f->images), "mount of a file in the image directory",
	      "layers cannot be mounted from their files: directories as images only; needs root, Linux 6.12 with "
	      "EROFS, and an image directory that is not on overlayfs");
}

static void tmpfs_user_xattrs(const struct facts *f, struct dsec_probe_item *it)
{
	AUTO_CLOSE int fd = memfd_create("dsec", MFD_CLOEXEC);

	(void)f;
	tried(it, fd < 0 || fsetxattr(fd, "user.dsec", "1", 1, 0) < 0 ? -errno : 0,
	      "user attribute on a file in memory",
	      "with DSEC_TOP_MEMORY, an ordinary user's sandbox cannot remove directories of its image (Linux 6.6 "
	      "can)");
}

static void memfd_exec(const struct facts *f, struct dsec_probe_item *it)
{
	AUTO_CLOSE int fd = memfd_create("dsec", MFD_CLOEXEC | 0x10 /* MFD_EXEC */);

	(void)f;
	if (fd < 0 && errno == EACCES)
		set(it, false, "the helper program cannot be started; sysctl -w vm.memfd_noexec=1",
		    "vm.memfd_noexec is 2");
	else
		set(it, true, "", "executable memory files are allowed"); /* before Linux 6.3: no other kind */
}

static void seccomp(const struct facts *f, struct dsec_probe_item *it)
{
	uint32_t action = SECCOMP_RET_ERRNO;
	long r = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);

	(void)f;
	tried(it, r < 0 ? -errno : 0, "system call filters",
	      "no containers: a kernel with CONFIG_SECCOMP_FILTER is needed");
}

static void kvm(const struct facts *f, struct dsec_probe_item *it)
{
	AUTO_CLOSE int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	AUTO_CLOSE int vm = fd < 0 ? -1 : ioctl(fd, 0xae01 /* KVM_CREATE_VM */, 0);

	(void)f;
	tried(it, vm < 0 ? -errno : 0, fd < 0 ? "open \"/dev/kvm\"" : "make an empty machine with \"/dev/kvm\"",
	      "virtual machines run in software, about twenty times slower; be in group kvm, or allow nested "
	      "virtualisation");
}

static void bpf(const struct facts *f, struct dsec_probe_item *it)
{
	static const char effect[] =
		"run-queue delay of sandboxes cannot be measured; pressure and CPU counters are used";
	uint64_t off = dsec__attr_u64(AT_FDCWD, "/proc/sys/kernel/unprivileged_bpf_disabled");

	(void)f;
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		set(it, false, effect, "no type information in \"/sys/kernel/btf/vmlinux\"");
	else if (geteuid() != 0 && off != 0)
		set(it, false, effect, "not root, and kernel.unprivileged_bpf_disabled is not 0");
	else if (syscall(SYS_bpf, -1, NULL, 0) < 0 && errno != EINVAL)
		set(it, false, effect, "bpf: %s", strerror(errno));
	else
		set(it, true, "", "type information, and the call is allowed");
}

static void ksm(const struct facts *f, struct dsec_probe_item *it)
{
	uint64_t run = dsec__attr_u64(AT_FDCWD, "/sys/kernel/mm/ksm/run");

	(void)f;
	if (run == UINT64_MAX)
		set(it, false, "equal memory of live sandboxes is not merged", "no \"/sys/kernel/mm/ksm\"");
	else if (run != 1 && access("/sys/kernel/mm/ksm/run", W_OK) < 0)
		set(it, false, "equal memory of live sandboxes is not merged; echo 1 > /sys/kernel/mm/ksm/run",
		    "not running");
	else
		set(it, true, "", "run is %d%s", (int)run,
		    prctl(68 /* PR_GET_MEMORY_MERGE */, 0, 0, 0, 0) < 0 ? ", for marked memory only" : "");
}

static void core_scheduling(const struct facts *f, struct dsec_probe_item *it)
{
	unsigned long cookie = 0;

	(void)f;
	tried(it, prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, 0 /* this thread */, &cookie) < 0 ? -errno : 0,
	      "cookie of this thread",
	      "threads of different sandboxes may share a core at the same time; nothing to do where cores have one "
	      "thread");
}

static void swap(const struct facts *f, struct dsec_probe_item *it)
{
	struct sysinfo s;

	(void)f;
	(void)sysinfo(&s); /* cannot fail with a good address */
	if (s.totalswap)
		set(it, true, "", "%llu MiB", (unsigned long long)s.totalswap * s.mem_unit >> 20);
	else
		set(it, false, "memory of paused sandboxes can only be given back by storing it elsewhere",
		    "none is on");
}

static void psi(const struct facts *f, struct dsec_probe_item *it)
{
	char text[128];
	int r = dsec__attr_read(AT_FDCWD, "/proc/pressure/cpu", text, sizeof text);

	(void)f;
	tried(it, r < 0 ? r : 0, "\"/proc/pressure/cpu\"",
	      "admission goes by load, not by pressure; boot with psi=1 or a kernel with CONFIG_PSI");
}

static void pidfd(const struct facts *f, struct dsec_probe_item *it)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)f;
	tried(it, fd < 0 ? -errno : 0, "pidfd_open", "no sandboxes (from Linux 5.3)");
}

static void openat2(const struct facts *f, struct dsec_probe_item *it)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);

	(void)f;
	tried(it, fd < 0 ? -errno : 0, "openat2", "no containers (from Linux 5.6)");
}

/* These two are asked for something impossible: an answer other than ENOSYS means that they are there. */
static void mount_api(const struct facts *f, struct dsec_probe_item *it)
{
	int r = mount_setattr(-1, "", ~0u, NULL, 0) < 0 ? -errno : 0;

	(void)f;
	tried(it, r == -ENOSYS ? r : 0, "mounts by descriptor", "no containers (from Linux 5.12)");
}

static void clone3(const struct facts *f, struct dsec_probe_item *it)
{
	long r = syscall(SYS_clone3, NULL, 0) < 0 ? -errno : 0;

	(void)f;
	tried(it, r == -ENOSYS || r == -EPERM ? (int)r : 0, "clone3",
	      "no containers (from Linux 5.3; some container runtimes' filters hide it)");
}

static const char *type_name(long type)
{
	static const struct {
		unsigned long type;
		const char *name;
	} names[] = {
		{ 0xef53, "ext4" },        { 0x58465342, "xfs" },   { 0x9123683e, "btrfs" },   { 0x01021994, "tmpfs" },
		{ 0x794c7630, "overlay" }, { 0x6969, "nfs" },       { 0x65735546, "fuse" },    { 0x2fc12fc1, "zfs" },
		{ 0xf2f52010, "f2fs" },    { 0xff534d42, "cifs" },  { 0x01021997, "9p" },      { 0x858458f6, "ramfs" },
		{ 0x0bd00bd0, "lustre" },  { 0x00c36400, "ceph" },  { 0xca451a4e, "bcachefs" }, { 0xe0f5e1e2, "erofs" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].type == (unsigned long)type)
			return names[i].name;
	return "another type";
}

/* What `dir` lies on; bad: types that its use does not get on with, and what follows. */
static void directory(struct dsec_probe_item *it, const char *dir, const char *bad, const char *effect)
{
	struct statfs s;
	const char *type;
	bool unfit;

	if (statfs(dir, &s) < 0) {
		tried(it, -errno, dir, "the node cannot be used");
		return;
	}
	type = type_name((long)s.f_type);
	unfit = strstr(bad, type);
	set(it, !(s.f_flags & ST_RDONLY) && !unfit,
	    s.f_flags & ST_RDONLY ? "the node cannot be used"
	    : unfit		  ? effect
				  : "",
	    "\"%.120s\": %s (%lx)%s%s%s%s", dir, type, (unsigned long)s.f_type,
	    s.f_flags & ST_RDONLY ? ", read-only" : "", s.f_flags & ST_NOEXEC ? ", noexec" : "",
	    s.f_flags & ST_NODEV ? ", nodev" : "", s.f_flags & ST_NOSUID ? ", nosuid" : "");
}

static void state_dir(const struct facts *f, struct dsec_probe_item *it)
{
	directory(it, f->root, "overlay nfs cifs 9p lustre ceph fuse ramfs",
		  "DSEC_TOP_DISK is refused: this type cannot be the writable part of an overlay; set DSEC_ROOT to a "
		  "directory on ext4, xfs, btrfs or tmpfs");
}

static void image_dir(const struct facts *f, struct dsec_probe_item *it)
{
	directory(it, f->images, "overlay",
		  "layers cannot be mounted from files on overlayfs, nor their owners mapped; set DSEC_IMAGES to a "
		  "directory on another file system");
}

static const struct {
	const char *name;
	void (*fn)(const struct facts *f, struct dsec_probe_item *it);
	enum { ALWAYS, WITH_ROOT, WITH_IMAGES } when;
} rows[] = {
	{ "kernel", kernel, ALWAYS },
	{ "user_namespaces", user_namespaces, ALWAYS },
	{ "id_ranges", id_ranges, ALWAYS },
	{ "cgroup", cgroup, ALWAYS },
	{ "cgroup_cpu", cgroup_cpu, ALWAYS },
	{ "cgroup_memory", cgroup_memory, ALWAYS },
	{ "cgroup_pids", cgroup_pids, ALWAYS },
	{ "cgroup_exec", cgroup_exec, ALWAYS },
	{ "cgroup_kill", cgroup_kill, ALWAYS },
	{ "pidfd", pidfd, ALWAYS },
	{ "openat2", openat2, ALWAYS },
	{ "mount_api", mount_api, ALWAYS },
	{ "clone3", clone3, ALWAYS },
	{ "seccomp", seccomp, ALWAYS },
	{ "memfd_exec", memfd_exec, ALWAYS },
	{ "overlay", overlay, ALWAYS },
	{ "overlay_user_namespace", overlay_user_namespace, ALWAYS },
	{ "idmapped_mounts", idmapped_mounts, ALWAYS },
	{ "erofs_files", erofs_files, WITH_IMAGES },
	{ "tmpfs_user_xattrs", tmpfs_user_xattrs, ALWAYS },
	{ "kvm", kvm, ALWAYS },
	{ "bpf", bpf, ALWAYS },
	{ "ksm", ksm, ALWAYS },
	{ "core_scheduling", core_scheduling, ALWAYS },
	{ "swap", swap, ALWAYS },
	{ "psi", psi, ALWAYS },
	{ "state_dir", state_dir, WITH_ROOT },
	{ "image_dir", image_dir, WITH_IMAGES },
};

/* Which rows there are, and with items, what they say. */
static size_t fill(const struct facts *f, struct dsec_probe_item *items, size_t n_items, size_t item_sz)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dsec_probe_item it = { 0 };
		char *to = (char *)items + n * item_sz;

		if ((rows[i].when == WITH_ROOT && !f->root) || (rows[i].when == WITH_IMAGES && !f->images))
			continue;
		if (n++ >= n_items)
			continue;
		(void)snprintf(it.name, sizeof it.name, "%s", rows[i].name); /* fits */
		rows[i].fn(f, &it);
		memset(to, 0, item_sz); /* a newer caller's item is longer */
		memcpy(to, &it, sizeof it);
	}
	return n;
}

int dsec__probe(const char *root, const char *images, struct dsec_probe_item *items, size_t n_items, size_t item_sz,
		struct dsec_error *err)
{
	struct facts f = { .root = root, .images = images };
	int saved = errno;
	size_t n;
	int r;

	if (n_items && !items)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "items: NULL with n_items %zu", n_items);
	if (n_items && item_sz < sizeof *items)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "item_sz: %zu is smaller than any version's",
				  item_sz);
	if (!n_items)
		return (int)fill(&f, NULL, 0, 0);
	r = dsec__cgroot_open(&f.cgroot, err);
	if (r == 0) {
		dsec__trial_userns(&f.trial);
		n = fill(&f, items, n_items, item_sz);
		r = (int)n;
		dsec__closep(&f.trial.userns_fd);
	}
	dsec__cgroot_close(&f.cgroot);
	errno = saved;
	return r;
}
