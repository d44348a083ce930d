/* SPDX-License-Identifier: MIT */
/* What a sandbox sees and may do. */
#include "live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void all_seven_namespaces_are_its_own(void **state)
{
	struct live *l = *state;
	static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		char path[64], line[128], host[64] = "";
		struct dsec_result r;

		(void)snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
		(void)snprintf(line, sizeof line, "readlink %s", path);
		assert_true(readlink(path, host, sizeof host - 1) > 0);
		r = sh(l->sb, line, NULL);
		r.stdout_data[strcspn(r.stdout_data, "\n")] = 0;
		assert_int_equal(strncmp(r.stdout_data, kinds[i], strlen(kinds[i])), 0);
		assert_string_not_equal(r.stdout_data, host);
		dsec_result_clear(&r);
	}
}

static void its_root_is_nobody_here_and_apart_from_others(void **state)
{
	struct live *l = *state;
	struct dsec_sandbox *other;
	struct dsec_result a, b;
	struct dsec_error err;

	a = sh(l->sb, "cat /proc/self/uid_map", NULL);
	OK(dsec_sandbox_create(l->node, NULL, &other, &err));
	b = sh(other, "cat /proc/self/uid_map", NULL);
	if (geteuid() == 0) {
		assert_null(strstr(a.stdout_data, " 0 0 "));
		assert_string_not_equal(a.stdout_data, b.stdout_data);
	}
	dsec_result_clear(&a);
	dsec_result_clear(&b);
	OK(dsec_sandbox_stop(other, 0, &err));
	dsec_sandbox_close(other);
	SAYS(l->sb, "id -u; ls -ldn / /usr | cut -d' ' -f3 | sort -u; touch /usr/x && stat -c %u /usr/x", "0\n0\n0\n");
}

static void secrets_and_the_hosts_files_are_not_there(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "cat /etc/shadow /etc/sudoers /etc/ssh/ssh_host_* 2>/dev/null | wc -c", "0\n");
	SAYS(l->sb, "ls -A /home/user /root /tmp /var/tmp /mnt /work | grep -v : | tr -d '\\n'", "");
	SAYS(l->sb, "mount | grep -c -E 'ext4|/dev/(vd|sd|nvme)' || :", "0\n");
}

static void pid_1_cannot_be_touched(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "cat /proc/1/comm", "dsec-agent\n");
	SAYS(l->sb, "ls /proc/1/fd 2>/dev/null | wc -l; readlink /proc/1/exe || echo no; cat /proc/1/mem 2>/dev/null | wc -c", "0\nno\n0\n");
	SAYS(l->sb, "kill -9 1 2>/dev/null; kill -STOP 1; echo lives", "lives\n");
	SAYS(l->sb, "tr '\\0' ' ' < /proc/1/cmdline | grep -c / || :", "0\n");
}

static void only_three_descriptors_whatever_the_host_holds(void **state)
{
	struct live *l = *state;
	int leak = open("/etc/shadow", O_RDONLY), high = dup2(leak, 300);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	(void)close(leak);
	(void)close(high);
	SAYS(l->sb, "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "); /* 3 is ls's own */
	SAYS(l->sb, "ls -l /proc/self/fd | grep -c shadow || :", "0\n");
}

static void capabilities_are_few_and_not_inherited(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "grep -E 'CapInh|CapAmb' /proc/self/status | tr -dc '1-9a-f' | tr -d 'abpmnh'", "");
	SAYS(l->sb, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr -dc '0-9'", "12");
	/* CAP_SYS_ADMIN 21, SYS_PTRACE 19, SYS_MODULE 16, NET_ADMIN 12, SYS_RESOURCE 24, SYS_RAWIO 17 */
	SAYS(l->sb, "b=$(grep CapBnd /proc/self/status | cut -f2); echo $(( 0x$b & ((1<<21)|(1<<19)|(1<<16)|(1<<12)|(1<<24)|(1<<17)) ))", "0\n");
}

static void mounts_and_namespaces_are_refused(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "mount -t tmpfs none /mnt 2>/dev/null || echo no", "no\n");
	SAYS(l->sb, "umount /proc 2>/dev/null || echo no", "no\n");
	SAYS(l->sb, "for f in U m p n i u C; do unshare -$f true 2>/dev/null && echo yes; done; echo end", "end\n");
	SAYS(l->sb, "chroot / unshare -Ur true 2>/dev/null || echo no", "no\n");
	SAYS(l->sb, "hostname other 2>/dev/null || echo no; date -s 2000-01-01 >/dev/null 2>&1 || echo no; dmesg 2>/dev/null || echo no",
	     "no\nno\nno\n");
}

static void kernel_files_are_masked(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "cat /proc/kcore /proc/kmsg /proc/kpageflags /proc/timer_list /proc/keys 2>/dev/null | wc -c", "0\n");
	SAYS(l->sb, "echo b > /proc/sysrq-trigger 2>/dev/null || echo no", "no\n");
	SAYS(l->sb, "echo 1 > /proc/sys/vm/drop_caches 2>/dev/null || echo no; echo 9 > /proc/sys/user/max_user_namespaces 2>/dev/null || echo no",
	     "no\nno\n");
	SAYS(l->sb, "touch /sys/x 2>/dev/null || echo no; ls /sys/firmware | wc -l; ls /sys/fs/cgroup | wc -l", "no\n0\n0\n");
	SAYS(l->sb, "cat /proc/sys/user/max_user_namespaces", "0\n");
}

static void devices_are_the_harmless_ones(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "cd /dev; ls | tr '\\n' ' '", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ");
	SAYS(l->sb, "mknod /tmp/d b 8 0 2>/dev/null || echo no; touch /dev/new 2>/dev/null || echo no", "no\nno\n");
	SAYS(l->sb, "echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo y > /dev/shm/y; cat /dev/shm/y", "3\n3\ny\n");
}

static void the_network_is_loopback_only(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "ls /sys/class/net | tr '\\n' ' '", "lo ");
	SAYS(l->sb, "python3 -c '\nimport socket\ns = socket.create_server((\"127.0.0.1\", 0))\n"
	     "c = socket.create_connection(s.getsockname())\ns.accept()[0].send(b\"hi\")\nprint(c.recv(9).decode())'", "hi\n");
	SAYS(l->sb, "python3 -c 'import socket; socket.create_connection((\"10.0.0.1\", 80), 2)' 2>/dev/null || echo no", "no\n");
}

static void work_of_every_day_runs(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "printf '#include <stdio.h>\\nint main(void) { return puts(\"hi\") < 0; }' > a.c && gcc -o a a.c && ./a", "hi\n");
	SAYS(l->sb, "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'", "1\n");
	SAYS(l->sb, "perl -e 'print join(\",\", sort { $a <=> $b } 3, 1, 2), \"\\n\"'", "1,2,3\n");
	SAYS(l->sb, "useradd -m tester 2>/dev/null; id -un tester", "tester\n");
	SAYS(l->sb, "python3 -c 'import multiprocessing as m\nwith m.Pool(2) as p: print(sum(p.map(abs, range(-3, 1))))'", "6\n");
}

/* Makes a system call by number from Python; prints what became of it. */
#define CALL(name, expect, ...)                                                                                          \
	do {                                                                                                             \
		char line_[800];                                                                                         \
		(void)snprintf(line_, sizeof line_,                                                                      \
			       "python3 -c 'import ctypes, errno; c = ctypes.CDLL(None, use_errno=True); "               \
			       "r = c.syscall(%d, " __VA_ARGS__ "); "                                                    \
			       "print(errno.errorcode[ctypes.get_errno()] if r < 0 else \"done\")'", SYS_##name);        \
		says_any(l->sb, line_, #name, expect, __LINE__);                                                         \
	} while (0)

static void says_any(struct dsec_sandbox *sb, const char *line, const char *name, const char *expect, int at)
{
	struct dsec_result r = sh(sb, line, NULL);
	char got[64];

	(void)snprintf(got, sizeof got, " %.*s ", (int)strcspn(r.stdout_data, "\n"), r.stdout_data);
	if (r.exit_code != 0 || !strstr(expect, got)) {
		print_error("%s: \"%s\" (code %d, signal %d, %s), expected one of%s\n", name, r.stdout_data, r.exit_code,
			    r.signal, r.stderr_data, expect);
		_fail(__FILE__, at);
	}
	dsec_result_clear(&r);
}

static void calls_into_the_kernels_depths_are_refused(void **state)
{
	struct live *l = *state;

	CALL(bpf, " EPERM ENOSYS ", "0, 0, 0");
	CALL(userfaultfd, " EPERM ENOSYS ", "0");
	CALL(io_uring_setup, " EPERM ENOSYS ", "8, ctypes.create_string_buffer(256)");
	CALL(perf_event_open, " EPERM EACCES ENOSYS ", "ctypes.create_string_buffer(128), 0, -1, -1, 0");
	CALL(add_key, " EPERM ENOSYS ", "b\"user\", b\"k\", b\"v\", 1, -3");
	CALL(keyctl, " EPERM ENOSYS ", "0, -3, 1");
	CALL(init_module, " EPERM ENOSYS ", "b\"x\", 1, b\"\"");
	CALL(finit_module, " EPERM ENOSYS ", "0, b\"\", 0");
	CALL(kexec_load, " EPERM ENOSYS ", "0, 0, 0, 0");
	CALL(reboot, " EPERM ENOSYS ", "0xfee1dead, 672274793, 0x1234567, 0");
	CALL(swapon, " EPERM ENOSYS ", "b\"/x\", 0");
	CALL(open_by_handle_at, " EPERM ENOSYS ", "0, 0, 0");
	CALL(fsopen, " EPERM ENOSYS ", "b\"tmpfs\", 0");
	CALL(open_tree, " EPERM ENOSYS ", "-100, b\"/\", 1");
	CALL(move_mount, " EPERM ENOSYS ", "-100, b\"/\", -100, b\"/mnt\", 0");
	CALL(mount_setattr, " EPERM ENOSYS ", "-100, b\"/\", 0, 0, 0");
	CALL(pivot_root, " EPERM ENOSYS ", "b\"/\", b\"/\"");
	CALL(setns, " EPERM ENOSYS ", "0, 0");
	CALL(unshare, " EPERM ENOSYS ", "0x10000000");
	CALL(clone, " EPERM ENOSYS ", "0x10000011, 0, 0, 0, 0"); /* CLONE_NEWUSER | SIGCHLD */
	CALL(clone3, " ENOSYS ", "0, 0");
	CALL(settimeofday, " EPERM ENOSYS ", "ctypes.create_string_buffer(16), 0");
	CALL(clock_adjtime, " EPERM ENOSYS ", "0, ctypes.create_string_buffer(b\"\\x01\" + bytes(300))");
	CALL(ptrace, " EPERM ESRCH ENOSYS ", "16, 1, 0, 0");
	CALL(process_vm_readv, " EPERM ESRCH ENOSYS ", "1, (ctypes.c_ulong * 2)(id(c), 8), 1, (ctypes.c_ulong * 2)(0x400000, 8), 1, 0");
	CALL(kcmp, " EPERM ESRCH ENOSYS ", "1, 1, 0, 0, 0");
	CALL(acct, " EPERM ENOSYS ", "0");
	CALL(quotactl, " EPERM EINVAL ENOSYS ENODEV ENOTBLK ", "0, 0, 0, 0");
	CALL(syslog, " EPERM ENOSYS ", "3, ctypes.create_string_buffer(16), 16");
	SAYS(l->sb, "echo lives", "lives\n");
}

static void processes_of_others_do_not_exist(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sleep", "61.5", NULL };
	struct dsec_sandbox *other;
	struct dsec_result r;
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_sandbox_create(l->node, NULL, &other, &err));
	OK(dsec_exec_start(other, argv, NULL, &e, &err));
	SAYS(other, "until pgrep -f 'sleep 61.5' >/dev/null; do :; done; echo runs", "runs\n");
	SAYS(l->sb, "pgrep -c -f 'sleep 61.[5]' || :; ls /proc | grep -c '^[0-9]' | xargs test 12 -gt && echo few", "0\nfew\n");
	r = sh(l->sb, "kill -9 -1; echo killed all but itself", NULL);
	dsec_result_clear(&r);
	assert_int_equal(dsec_exec_poll(e, &err), 0); /* that reached nobody else */
	SAYS(l->sb, "echo lives", "lives\n");
	dsec_exec_close(e);
	OK(dsec_sandbox_stop(other, 0, &err));
	dsec_sandbox_close(other);
}

static void shared_memory_and_sockets_are_its_own(void **state)
{
	struct live *l = *state;
	int id = shmget(0x64736563, 4096, IPC_CREAT | 0666);

	assert_true(id >= 0);
	SAYS(l->sb, "ipcs -m 2>/dev/null | grep -c 0x64736563 || :; ls /dev/shm | wc -l; wc -l < /proc/net/unix | xargs test 3 -gt && echo alone",
	     "0\n0\nalone\n");
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
}

static void what_root_writes_inside_is_not_roots_outside(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .top = DSEC_TOP_DISK);
	struct dsec_error err;
	char cmd[600];

	if (geteuid() != 0)
		SKIP("an ordinary user's sandbox has that user's id outside");
	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "echo x > /root/marked-file; mkdir /root/marked-dir; cp /bin/true /root/marked-suid; chmod 4755 /root/marked-suid; id -u", "0\n");
	(void)snprintf(cmd, sizeof cmd,
		       "f=$(find $DSEC_ROOT/sb/%s -name 'marked-*'); [ $(echo \"$f\" | wc -l) = 3 ] && "
		       "for i in $f; do [ $(stat -c %%u $i) -ge 65536 ] && [ $(stat -c %%g $i) -ge 65536 ] || exit 1; done",
		       dsec_sandbox_id(l->sb));
	assert_int_equal(system(cmd), 0);
	/* And nobody else on this machine reaches a set-user-id file of it by its path. */
	assert_int_equal(system("[ $(stat -c %a $DSEC_ROOT/sb) = 700 ]"), 0);
}

/* Overwriting the running program is how a container became the host's root before. */
static void the_librarys_programs_cannot_be_overwritten(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "/root/self", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_sandbox *next;
	struct dsec_error err;

	SAYS(l->sb, "for f in /proc/1/exe /proc/self/exe; do true > $f; done 2>/dev/null; echo tried", "tried\n");
	SAYS(l->sb, "python3 -c '\nimport os\nfor p in os.listdir(\"/proc\"):\n    if p.isdigit():\n        try: print(os.readlink(f\"/proc/{p}/exe\"))\n"
	     "        except OSError: pass' | grep -c -e memfd -e dsec || :", "0\n");
	/* An image whose program is a script that names itself as its interpreter ends with an error. */
	OK(dsec_sandbox_write(l->sb, "/root/self", "#!/proc/self/exe\n", 17, 0755, &err));
	if (dsec_sandbox_exec(l->sb, argv, NULL, &r, &err) == 0)
		assert_int_not_equal(r.exit_code, 0);
	dsec_result_clear(&r);
	OK(dsec_sandbox_create(l->node, NULL, &next, &err)); /* what runs next is as it was */
	SAYS(next, "echo whole", "whole\n");
	OK(dsec_sandbox_stop(next, 0, &err));
	dsec_sandbox_close(next);
}

static void no_new_privileges_and_no_way_up(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .user = "1000");
	struct dsec_result r;

	SAYS(l->sb, "ls -l /proc/self/root/../.. | grep -c host-only || :; cd /proc/self/cwd/../../../..; pwd -P", "0\n/\n");
	SAYS(l->sb, "python3 -c '\nimport os\nos.chroot(\"/tmp\") if hasattr(os, \"chroot\") else 0\nos.chdir(\"../../../../..\")\n"
	     "print(sorted(os.listdir(\".\"))[:0])' 2>/dev/null || echo '[]'", "[]\n");
	if (geteuid() != 0)
		SKIP("an ordinary user's sandbox has one user id");
	SAYS(l->sb, "cp /bin/cat /tmp/suid; chmod 4755 /tmp/suid; echo secret > /root/s; chmod 600 /root/s; chmod 755 /root; echo ok", "ok\n");
	o.workdir = "/tmp";
	r = sh(l->sb, "/tmp/suid /root/s 2>/dev/null || echo denied; su -c id 2>/dev/null </dev/null || echo denied", &o);
	assert_string_equal(r.stdout_data, "denied\ndenied\n");
	dsec_result_clear(&r);
}

static void reading_everything_harms_nothing(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 4000);
	struct dsec_result r = sh(l->sb, "find /proc /sys /dev -maxdepth 4 -type f 2>/dev/null | head -n 3000 | xargs -n 50 timeout 1 head -c 200 >/dev/null 2>&1", &o);

	assert_true(r.reason == DSEC_REASON_EXITED || r.reason == DSEC_REASON_TIMEOUT);
	dsec_result_clear(&r);
	r = sh(l->sb, "for f in $(find /proc/sys /sys -type f -maxdepth 6 2>/dev/null | head -n 2000); do echo 0 2>/dev/null > $f && echo $f; done 2>/dev/null", &o);
	if (r.stdout_len)
		fail_msg("written: %s", r.stdout_data);
	dsec_result_clear(&r);
}

/* It starts all commands, which get what it has. */
static void the_agents_limits_are_not_the_sandboxs_to_set(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "prlimit --pid 1 --nofile=0:0 2>/dev/null || echo refused; prlimit --pid 1 --nproc=0:0 2>/dev/null || echo refused",
	     "refused\nrefused\n");
	SAYS(l->sb, "prlimit --nofile=50:60 sh -c 'ulimit -n'; echo usable", "50\nusable\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE(all_seven_namespaces_are_its_own),
		LIVE(its_root_is_nobody_here_and_apart_from_others),
		LIVE(secrets_and_the_hosts_files_are_not_there),
		LIVE(pid_1_cannot_be_touched),
		LIVE(the_agents_limits_are_not_the_sandboxs_to_set),
		LIVE_NODE(only_three_descriptors_whatever_the_host_holds),
		LIVE(capabilities_are_few_and_not_inherited),
		LIVE(mounts_and_namespaces_are_refused),
		LIVE(kernel_files_are_masked),
		LIVE(devices_are_the_harmless_ones),
		LIVE(the_network_is_loopback_only),
		LIVE(work_of_every_day_runs),
		LIVE(calls_into_the_kernels_depths_are_refused),
		LIVE(processes_of_others_do_not_exist),
		LIVE(shared_memory_and_sockets_are_its_own),
		LIVE_NODE(what_root_writes_inside_is_not_roots_outside),
		LIVE(the_librarys_programs_cannot_be_overwritten),
		LIVE(no_new_privileges_and_no_way_up),
		LIVE(reading_everything_harms_nothing),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
