/* SPDX-License-Identifier: MIT */
/* What a sandbox sees and may do. */
#include "live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE(all_seven_namespaces_are_its_own),
		LIVE(its_root_is_nobody_here_and_apart_from_others),
		LIVE(secrets_and_the_hosts_files_are_not_there),
		LIVE(pid_1_cannot_be_touched),
		LIVE_NODE(only_three_descriptors_whatever_the_host_holds),
		LIVE(capabilities_are_few_and_not_inherited),
		LIVE(mounts_and_namespaces_are_refused),
		LIVE(kernel_files_are_masked),
		LIVE(devices_are_the_harmless_ones),
		LIVE(the_network_is_loopback_only),
		LIVE(work_of_every_day_runs),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
