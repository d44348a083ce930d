/* SPDX-License-Identifier: MIT */
/*
 * Images: names that are refused, the tree that "host" becomes, and the rules for what must not be copied into it. Works in
 * directories of its own below /tmp, as any user; what root alone can show is skipped for others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these four first */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "image/image.h"
#include "image/secret.h"
#include "node/state.h"
#include "util/cleanup.h"

#define RESOLVE_MAX_NS 100000u /* of one resolve when the tree exists; it runs for every create */

static char images[64];
static struct dsec__image image;

static int setup(void **state)
{
	(void)state;
	(void)strcpy(images, "/tmp/dsec-test-image-XXXXXX");
	return mkdtemp(images) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return dsec__remove_tree(AT_FDCWD, images);
}

static void resolve_host(void)
{
	struct dsec_error err = { 0 };
	int r = dsec__image_resolve("host", images, &image, &err);

	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	assert_int_equal(err.code, 0); /* untouched on success */
}

/* It is slower by far, and its limit of descriptors is another. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* A path below the made tree; the next call overwrites it. */
static const char *below(const char *path)
{
	static char buf[PATH_MAX + 64];

	(void)snprintf(buf, sizeof buf, "%s/%s", image.root, path);
	return buf;
}

static struct stat stat_below(const char *path)
{
	struct stat st;

	if (lstat(below(path), &st) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return st;
}

static void assert_text(const char *path, const char *want)
{
	char buf[1024] = "";
	AUTO_CLOSE int fd = open(below(path), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof buf - 1) >= 0);
	assert_non_null(strstr(buf, want));
}

/* Names of <images>/host; temporary ones are counted apart. */
static void count_trees(int *ret_made, int *ret_temporary)
{
	char path[80];
	AUTO_CLOSEDIR DIR *dir = NULL;

	*ret_made = *ret_temporary = 0;
	(void)snprintf(path, sizeof path, "%s/host", images);
	dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			++*(e->d_name[0] == '.' ? ret_temporary : ret_made);
}

static void assert_refused(const char *name, int code)
{
	struct dsec_error err = { 0 };

	assert_int_equal(dsec__image_resolve(name, images, &image, &err), code);
	assert_int_equal(err.code, code);
	assert_int_equal(err.step, DSEC_STEP_IMAGE);
	assert_true(err.text[0]);
	assert_int_equal(dsec__image_resolve(name, images, &image, NULL), code);
}

static void test_names_refused(void **state)
{
	char too_long[PATH_MAX + 2];

	(void)state;
	memset(too_long, 'a', sizeof too_long - 1);
	too_long[0] = '/';
	too_long[sizeof too_long - 1] = 0;
	assert_refused("", -EINVAL);
	assert_refused("hos", -EINVAL);
	assert_refused("hosts", -EINVAL);
	assert_refused("usr", -EINVAL);
	assert_refused("../usr", -EINVAL);
	assert_refused("/usr/..", -EINVAL);
	assert_refused("/usr/../etc", -EINVAL);
	assert_refused("/..", -EINVAL);
	assert_refused(too_long, -EINVAL);
	assert_refused("/tmp/dsec-no-such-directory", -ENOENT);
	assert_refused("/etc/passwd", -ENOTDIR);
	assert_refused("/etc/passwd/x", -ENOTDIR);
}

static void test_directory(void **state)
{
	struct dsec_error err = { 0 };
	char dots[80];

	(void)state;
	assert_int_equal(dsec__image_resolve(images, images, &image, &err), 0);
	assert_string_equal(image.root, images);
	assert_int_equal(image.n_trees, 0);
	/* two dots are refused only where they are a whole part of the path */
	(void)snprintf(dots, sizeof dots, "%s/..x", images);
	assert_int_equal(mkdir(dots, 0755), 0);
	assert_int_equal(dsec__image_resolve(dots, images, &image, &err), 0);
}

static void test_no_images_directory(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	assert_int_equal(dsec__image_resolve("host", "/tmp/dsec-no-such-directory", &image, &err), -ENOENT);
	assert_int_equal(err.step, DSEC_STEP_IMAGE);
	assert_non_null(strstr(err.text, "/tmp/dsec-no-such-directory"));
}

static void test_standard_directories(void **state)
{
	static const struct {
		const char *path;
		mode_t mode;
	} want[] = {
		{ "", 0755 },        { "proc", 0555 }, { "sys", 0555 },    { "dev", 0755 },      { "run", 0755 },
		{ "tmp", 01777 },    { "root", 0700 }, { "home", 0755 },   { "mnt", 0755 },      { "media", 0755 },
		{ "opt", 0755 },     { "srv", 0755 },  { "work", 0755 },   { "var", 0755 },      { "var/tmp", 01777 },
		{ "var/lib", 0755 }, { "etc", 0755 },  { "var/log", 0755 }, { "var/cache", 0755 }, { "usr", 0755 },
	};
	mode_t mask = umask(077); /* a trainer's umask must not show in the tree */

	(void)state;
	resolve_host();
	(void)umask(mask);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct stat st = stat_below(want[i].path);

		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(st.st_mode & 07777, want[i].mode);
		assert_int_equal(st.st_uid, geteuid());
	}
	assert_int_equal(stat_below("etc/ssl").st_mode & 07777, 0755);
	assert_true(S_ISLNK(stat_below("var/run").st_mode));
}

static void test_tops(void **state)
{
	static const char *const tops[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
	size_t trees = 1;

	(void)state;
	resolve_host();
	assert_string_equal(image.trees[0].source, "/usr");
	assert_string_equal(image.trees[0].target, "usr");
	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		char host[16], a[PATH_MAX] = "", b[PATH_MAX] = "";
		struct stat st;

		(void)snprintf(host, sizeof host, "/%s", tops[i]);
		if (lstat(host, &st) < 0) {
			assert_int_equal(access(below(tops[i]), F_OK), -1);
			continue;
		}
		assert_int_equal(stat_below(tops[i]).st_mode & S_IFMT, st.st_mode & S_IFMT);
		if (S_ISLNK(st.st_mode)) {
			assert_true(readlink(host, a, sizeof a - 1) > 0);
			assert_true(readlink(below(tops[i]), b, sizeof b - 1) > 0);
			assert_string_equal(a, b);
		} else {
			assert_string_equal(image.trees[trees].source, host);
			assert_string_equal(image.trees[trees].target, tops[i]);
			trees++;
		}
	}
	assert_int_equal(image.n_trees, trees);
}

static void test_accounts_are_not_the_hosts(void **state)
{
	(void)state;
	resolve_host();
	assert_text("etc/passwd", "root:x:0:0:");
	assert_text("etc/passwd", "\nuser:x:1000:1000:");
	assert_text("etc/passwd", "\nnobody:x:65534:");
	assert_text("etc/group", "\nuser:x:1000:");
	assert_text("etc/hostname", "dsec\n");
	assert_text("etc/hosts", "127.0.0.1\tlocalhost dsec\n");
	assert_int_equal(stat_below("etc/machine-id").st_size, 0);
	assert_int_equal(stat_below("etc/passwd").st_mode & 07777, 0644);
}

/* What programs of the host need to work at all. */
static void test_needed_files(void **state)
{
	static const char *const names[] = { "ld.so.cache", "nsswitch.conf", "ssl/certs/ca-certificates.crt", "alternatives",
					     "resolv.conf", "services", "protocols" };

	(void)state;
	resolve_host();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char host[128], here[128];
		struct stat st;

		(void)snprintf(host, sizeof host, "/etc/%s", names[i]);
		(void)snprintf(here, sizeof here, "etc/%s", names[i]);
		if (stat(host, &st) == 0 && S_ISREG(st.st_mode)) {
			assert_true(S_ISREG(stat_below(here).st_mode));
			assert_int_equal(stat_below(here).st_size, st.st_size);
		} else if (stat(host, &st) == 0) {
			assert_true(S_ISDIR(stat_below(here).st_mode));
		}
	}
}

static int checked;

static int check_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *rest = path + strlen(image.root) + strlen("/etc");
	const char *reason = NULL;
	char host[PATH_MAX];
	struct stat original;

	if (*rest == 0)
		return 0;
	if (dsec__secret_name(path + at->base, &reason))
		fail_msg("%s was copied: %s", path, reason);
	assert_true(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	assert_int_equal(st->st_mode & 07000, 0);
	assert_int_equal(st->st_uid, geteuid());
	(void)snprintf(host, sizeof host, "/etc%s", rest);
	if (type == FTW_F && stat(host, &original) == 0 && strcmp(rest, "/machine-id") != 0) {
		assert_true(original.st_mode & 0004);
		checked++;
	}
	return 0;
}

static void test_nothing_secret(void **state)
{
	char etc[PATH_MAX + 8];

	(void)state;
	resolve_host();
	checked = 0;
	(void)snprintf(etc, sizeof etc, "%s/etc", image.root);
	assert_int_equal(nftw(etc, check_entry, 32, FTW_PHYS), 0);
	assert_true(checked > 10);
	assert_int_equal(access(below("etc/shadow"), F_OK), -1);
	assert_int_equal(access(below("etc/ssl/private"), F_OK), -1);
	assert_int_equal(access(below("etc/ssh"), F_OK), -1);
}

static void test_secret_names(void **state)
{
	static const char *const yes[] = { "shadow", "gshadow", "shadow-", "passwd-", "sudoers", "sudoers.d", "server.key",
					   "ssh_host_rsa_key", "private", "krb5.keytab", "auth.conf.d", "my-secret.txt",
					   "NetworkManager", "wireguard", "docker", "environment", ".pwd.lock", "cert.p12" };
	static const char *const no[] = { "ld.so.cache", "nsswitch.conf", "alternatives", "ssl", "certs", "resolv.conf",
					  "ca-certificates.crt", "GlobalSign_Root_R46.pem", "002c0b4f.0", "python3", "fonts",
					  "services", "localtime", "apt", "trusted.gpg.d", "debian-archive-keyring.gpg",
					  "java-17-openjdk", "profile", "bash.bashrc" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		const char *reason = NULL;

		if (!dsec__secret_name(yes[i], &reason))
			fail_msg("\"%s\" would be copied", yes[i]);
		assert_non_null(reason);
		assert_true(dsec__secret_name(yes[i], NULL));
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (dsec__secret_name(no[i], NULL))
			fail_msg("\"%s\" would not be copied", no[i]);
}

static void test_secret_texts(void **state)
{
	static const char *const yes[] = { "x\n-----BEGIN RSA PRIVATE KEY-----\nx", "-----BEGIN PRIVATE KEY-----",
					   "deb https://me:pw@example.org/debian stable main\n",
					   "a https://example.org/ http://u:p@h", "export AWS_SECRET_ACCESS_KEY=abc\n",
					   "A=1\nHF_TOKEN=\"x\"", "SOME_API_KEY='k'", "PASSWORD=p" };
	static const char *const no[] = { "-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----",
					  "deb https://example.org/debian stable main\n", "mailto://someone@example.org",
					  "http://[::1]/a@b", "http://", "://", "passwd: files systemd\n", "TOKEN=\n",
					  "TOKEN=", "TOKEN=\"\"\n", "=", "==", "PASS_MAX_DAYS\t99999\n", "input_password = x",
					  "PATH=/usr/bin" };

	(void)state;
	assert_false(dsec__secret_text("", 0, NULL));
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		const char *reason = NULL;

		if (!dsec__secret_text(yes[i], strlen(yes[i]), &reason))
			fail_msg("\"%s\" would be copied", yes[i]);
		assert_non_null(reason);
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		/* a copy of the exact size, so that a checker of memory sees a step past its end */
		AUTO_FREE char *copy = malloc(strlen(no[i]));

		assert_non_null(copy);
		memcpy(copy, no[i], strlen(no[i]));
		if (dsec__secret_text(copy, strlen(no[i]), NULL))
			fail_msg("\"%s\" would not be copied", no[i]);
	}
}

static void test_made_once(void **state)
{
	struct stat first, second;
	int made, temporary;

	(void)state;
	resolve_host();
	first = stat_below("");
	assert_int_equal(strlen(strrchr(image.root, '/')), 17); /* 16 hexadecimal digits */
	assert_int_equal(strspn(strrchr(image.root, '/') + 1, "0123456789abcdef"), 16);
	resolve_host();
	second = stat_below("");
	assert_int_equal(first.st_ino, second.st_ino);
	count_trees(&made, &temporary);
	assert_int_equal(made, 1);
	assert_int_equal(temporary, 0);
}

static void test_fast_when_made(void **state)
{
	uint64_t best = UINT64_MAX;

	(void)state;
	resolve_host();
	for (int i = 0; i < 50; i++) {
		struct timespec a, b;
		uint64_t ns;

		(void)clock_gettime(CLOCK_MONOTONIC, &a);
		resolve_host();
		(void)clock_gettime(CLOCK_MONOTONIC, &b);
		ns = (uint64_t)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
		best = ns < best ? ns : best;
	}
	print_message("resolve of a made tree: %llu ns\n", (unsigned long long)best);
	if (!under_valgrind())
		assert_true(best < RESOLVE_MAX_NS);
}

static void test_many_at_once(void **state)
{
	enum { N = 8 };
	pid_t pids[N];
	int made, temporary;

	(void)state;
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			bool ok = dsec__image_resolve("host", images, &image, NULL) == 0 && access(below("etc/passwd"), R_OK) == 0 &&
				  access(below("etc/mtab"), F_OK) == 0;

			_exit(ok ? 0 : 1);
		}
	}
	for (int i = 0; i < N; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	count_trees(&made, &temporary);
	assert_int_equal(made, 1);
	assert_int_equal(temporary, 0);
}

/* Without a descriptor to spare the build fails somewhere in the middle, at another place each time. */
static void test_failed_build_leaves_nothing(void **state)
{
	int failed = 0;

	(void)state;
	if (under_valgrind()) {
		print_message("skipped: the limit of descriptors cannot be set under valgrind\n");
		skip();
	}
	for (int spare = 1; spare < 12; spare++) {
		pid_t pid = fork();
		int status, made, temporary;

		assert_true(pid >= 0);
		if (pid == 0) {
			struct rlimit limit = { 0 };
			struct dsec_error err = { 0 };
			int next = open("/", O_PATH | O_CLOEXEC), r;

			(void)close(next);
			limit.rlim_cur = limit.rlim_max = (rlim_t)(next + spare);
			if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
				_exit(2);
			r = dsec__image_resolve("host", images, &image, &err);
			if (r == 0)
				_exit(0);
			_exit(r == -EMFILE && err.code == r && err.step == DSEC_STEP_IMAGE ? 1 : 3);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		count_trees(&made, &temporary);
		assert_int_equal(made, WEXITSTATUS(status) == 0);
		assert_int_equal(temporary, 0);
		if (WEXITSTATUS(status) == 0)
			break;
		failed++;
	}
	assert_true(failed >= 4);
}

static void test_leftovers_are_swept(void **state)
{
	struct timespec old[2] = { { .tv_sec = time(NULL) - 7200 }, { .tv_sec = time(NULL) - 7200 } };
	char path[128], fresh[128], inner[160];
	int made, temporary;

	(void)state;
	(void)snprintf(path, sizeof path, "%s/host", images);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof path, "%s/host/.old", images);
	(void)snprintf(fresh, sizeof fresh, "%s/host/.fresh", images);
	(void)snprintf(inner, sizeof inner, "%s/etc", path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mkdir(fresh, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	resolve_host();
	count_trees(&made, &temporary);
	assert_int_equal(made, 1);
	assert_int_equal(temporary, 1); /* another process's build goes on */
	assert_int_equal(access(path, F_OK), -1);
}

static void test_foreign_tree_refused(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can give a directory away\n");
		skip();
	}
	resolve_host();
	assert_int_equal(chown(image.root, 1000, 1000), 0);
	assert_int_equal(dsec__image_resolve("host", images, &image, &err), -EPERM);
	assert_int_equal(err.step, DSEC_STEP_IMAGE);
}

static void test_link_in_place_of_host_refused(void **state)
{
	struct dsec_error err = { 0 };
	char path[80], elsewhere[80];
	struct stat st;

	(void)state;
	(void)snprintf(path, sizeof path, "%s/host", images);
	(void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", images);
	assert_int_equal(mkdir(elsewhere, 0755), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_true(dsec__image_resolve("host", images, &image, &err) < 0);
	assert_int_equal(err.step, DSEC_STEP_IMAGE);
	assert_int_equal(stat(elsewhere, &st), 0);
	assert_int_equal(st.st_nlink, 2); /* nothing was made in it */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names_refused),
		TEST(test_directory),
		TEST(test_no_images_directory),
		TEST(test_standard_directories),
		TEST(test_tops),
		TEST(test_accounts_are_not_the_hosts),
		TEST(test_needed_files),
		TEST(test_nothing_secret),
		TEST(test_secret_names),
		TEST(test_secret_texts),
		TEST(test_made_once),
		TEST(test_fast_when_made),
		TEST(test_many_at_once),
		TEST(test_failed_build_leaves_nothing),
		TEST(test_leftovers_are_swept),
		TEST(test_foreign_tree_refused),
		TEST(test_link_in_place_of_host_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
