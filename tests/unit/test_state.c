/* SPDX-License-Identifier: MIT */
/* The state directory: who lives, who owns a name, what a reap may take, and what it does when it cannot ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/cgroup.h"
#include "node/state.h"
#include "util/cleanup.h"
#include "util/fs.h"

static struct dsec__state st;

static int setup(void **state)
{
	struct dsec_error err;

	(void)state;
	(void)snprintf(st.root, sizeof st.root, "/tmp/dsec-test-state-%d", getpid());
	(void)snprintf(st.images, sizeof st.images, "/tmp/dsec-test-state-%d.images", getpid());
	return dsec__state_open(&st, &err);
}

static int teardown(void **state)
{
	(void)state;
	dsec__state_close(&st);
	return dsec__remove_tree(AT_FDCWD, st.root) + dsec__remove_tree(AT_FDCWD, st.images);
}

/* A sandbox's directory as a keeper makes it; its life is that of d->lock. */
static int make(struct dsec__sbdir *d, const char *name, struct dsec_error *err)
{
	struct dsec__spec spec = { .backend = "container", .image = "host", .name = name, .hostname = "h", .workdir = "/" };
	char id[DSEC__ID_LEN + 1];
	int r;

	dsec__id_new(id);
	spec.id = id;
	r = dsec__sbdir_create(&st, id, NULL, true, d, err);
	if (r < 0)
		return r;
	r = dsec__sbdir_describe(&st, d, &spec, err);
	if (r == 0)
		r = dsec__sbdir_publish(&st, d, err);
	if (r < 0)
		dsec__sbdir_remove(&st, d, NULL);
	return r;
}

static void die(struct dsec__sbdir *d)
{
	dsec__closep(&d->lock);
	dsec__closep(&d->fd);
}

static unsigned int slots_in_use(void)
{
	unsigned int n = 0;

	for (size_t i = 0; i < DSEC__SLOTS; i++)
		n += atomic_load(&st.shm->slots[i]) != 0;
	return n;
}

static void the_dead_are_reaped_and_the_living_are_not(void **state)
{
	struct dsec__sbdir a, b;
	struct dsec_error err;

	(void)state;
	assert_int_equal(make(&a, "one", &err), 0);
	assert_int_equal(make(&b, NULL, &err), 0);
	assert_int_equal(dsec__sbdir_alive(a.fd), 1);
	assert_int_equal(dsec__state_reap(&st, &err), 0);
	assert_int_equal(slots_in_use(), 2);
	die(&a);
	assert_true(dsec__sbdir_remains(&st, a.id));
	assert_int_equal(dsec__state_reap(&st, &err), 1);
	assert_false(dsec__sbdir_remains(&st, a.id));
	assert_true(dsec__sbdir_remains(&st, b.id));
	assert_int_equal(slots_in_use(), 1);
	assert_int_equal(faccessat(st.names_fd, "one", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	dsec__sbdir_remove(&st, &b, NULL);
	assert_int_equal(slots_in_use(), 0);
}

/* Nobody who looks may be taken for a keeper, nor a keeper for dead. */
static void looking_disturbs_nobody(void **state)
{
	struct dsec__sbdir d;
	struct dsec_error err;
	pid_t looker;

	(void)state;
	assert_int_equal(make(&d, NULL, &err), 0);
	looker = fork();
	if (looker == 0) {
		dsec__closep(&d.lock); /* the lock is of the open file: ours would keep it alive */
		for (;;)
			(void)dsec__sbdir_alive(d.fd);
	}
	for (int i = 0; i < 2000; i++)
		assert_int_equal(dsec__sbdir_alive(d.fd), 1);
	dsec__closep(&d.lock);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(dsec__sbdir_alive(d.fd), 0);
	assert_int_equal(dsec__state_reap(&st, &err), 1); /* though someone looks at it all the time */
	assert_int_equal(kill(looker, SIGKILL), 0);
	assert_int_equal(waitpid(looker, NULL, 0), looker);
	die(&d);
}

/* Without a descriptor nothing can be asked: what may live is left alone. */
static void in_doubt_it_lives(void **state)
{
	struct rlimit own, few;
	struct dsec__sbdir d;
	struct dsec_error err;
	int next;

	(void)state;
	assert_int_equal(make(&d, "kept", &err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	next = open("/", O_PATH | O_CLOEXEC);
	(void)close(next);
	for (int spare = 0; spare < 4; spare++) {
		few = (struct rlimit){ (rlim_t)(next + spare), own.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_true(dsec__sbdir_alive(d.fd) != 0);
		assert_true(dsec__state_reap(&st, &err) <= 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
		assert_int_equal(dsec__sbdir_alive(d.fd), 1);
	}
	dsec__sbdir_remove(&st, &d, "kept");
	assert_int_equal(faccessat(st.names_fd, "kept", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void a_name_of_the_dead_or_of_no_one_is_free(void **state)
{
	struct dsec__sbdir a, b;
	struct dsec_error err;

	(void)state;
	assert_int_equal(make(&a, "name", &err), 0);
	assert_int_equal(make(&b, "name", &err), -EEXIST);
	assert_int_equal(err.step, DSEC_STEP_NAME);
	die(&a);
	assert_int_equal(make(&b, "name", &err), 0);
	assert_int_equal(dsec__state_reap(&st, &err), 1); /* of the dead one, whose name is another's now */
	assert_int_equal(faccessat(st.names_fd, "name", F_OK, AT_SYMLINK_NOFOLLOW), 0);
	dsec__sbdir_remove(&st, &b, "name");
	assert_int_equal(symlinkat("nonsense", st.names_fd, "name"), 0);
	assert_int_equal(make(&a, "name", &err), 0);
	dsec__sbdir_remove(&st, &a, "name");
}

/* Of many that want the name of a dead one, while others reap, exactly one has it at a time. */
static void a_name_has_one_owner_however_many_want_it(void **state)
{
	enum { WORKERS = 4, ROUNDS = 150 };
	pid_t pids[WORKERS];

	(void)state;
	for (int w = 0; w < WORKERS; w++) {
		pids[w] = fork();
		assert_true(pids[w] >= 0);
		if (pids[w] > 0)
			continue;
		for (int i = 0; i < ROUNDS; i++) {
			struct dsec__sbdir d;
			struct dsec_error err;
			char owner[64] = "";
			int r = make(&d, "wanted", &err);

			if (r == -EEXIST) {
				(void)dsec__state_reap(&st, &err);
				continue;
			}
			if (r < 0)
				_exit(2);
			(void)usleep(500);
			if (readlinkat(st.names_fd, "wanted", owner, sizeof owner) != DSEC__ID_LEN ||
			    memcmp(owner, d.id, DSEC__ID_LEN) != 0)
				_exit(3); /* it was taken from us while we lived */
			if (i % 2)
				die(&d);
			else
				dsec__sbdir_remove(&st, &d, "wanted");
		}
		_exit(0);
	}
	for (int w = 0; w < WORKERS; w++) {
		int status;

		assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
		assert_int_equal(status, 0);
	}
	assert_true(dsec__state_reap(&st, &(struct dsec_error){ 0 }) >= 0);
	assert_int_equal(slots_in_use(), 0);
}

/* Ranges of ids that sandboxes use must not be given to others because a file was lost. */
static void a_damaged_block_is_refused_while_sandboxes_may_live(void **state)
{
	struct dsec__state other = { 0 };
	struct dsec__sbdir d;
	struct dsec_error err;

	(void)state;
	memcpy(other.root, st.root, sizeof other.root);
	memcpy(other.images, st.images, sizeof other.images);
	assert_int_equal(make(&d, NULL, &err), 0);
	assert_int_equal(renameat(st.root_fd, "shm", st.root_fd, "shm.lost"), 0);
	assert_int_equal(dsec__state_open(&other, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "shm"));
	assert_int_equal(dsec__state_open(&other, &err), -EUCLEAN); /* the first attempt made none */
	assert_int_equal(renameat(st.root_fd, "shm.lost", st.root_fd, "shm"), 0);
	assert_int_equal(dsec__state_open(&other, &err), 0);
	dsec__state_close(&other);
	dsec__sbdir_remove(&st, &d, NULL);
	assert_int_equal(unlinkat(st.root_fd, "shm", 0), 0);
	assert_int_equal(dsec__state_open(&other, &err), 0); /* nobody lives: it is made anew */
	dsec__state_close(&other);
}

static void names_and_ids(void **state)
{
	char id[DSEC__ID_LEN + 1], again[DSEC__ID_LEN + 1];
	char long_name[65];

	(void)state;
	dsec__id_new(id);
	dsec__id_new(again);
	assert_int_equal(strlen(id), DSEC__ID_LEN);
	assert_string_not_equal(id, again);
	assert_true(dsec__name_ok("a") && dsec__name_ok("0.x_y-z"));
	assert_false(dsec__name_ok("") || dsec__name_ok(".a") || dsec__name_ok("-a") || dsec__name_ok("_a"));
	assert_false(dsec__name_ok("A") || dsec__name_ok("a/b") || dsec__name_ok("a b") || dsec__name_ok("\xc3\xa4"));
	memset(long_name, 'a', 64);
	long_name[64] = 0;
	assert_false(dsec__name_ok(long_name));
	assert_true(dsec__name_ok(long_name + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_are_reaped_and_the_living_are_not),
		cmocka_unit_test(looking_disturbs_nobody),
		cmocka_unit_test(in_doubt_it_lives),
		cmocka_unit_test(a_name_of_the_dead_or_of_no_one_is_free),
		cmocka_unit_test(a_name_has_one_owner_however_many_want_it),
		cmocka_unit_test(a_damaged_block_is_refused_while_sandboxes_may_live),
		cmocka_unit_test(names_and_ids),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
