/* SPDX-License-Identifier: MIT */
/* One-value files: small enough that one read or one write is the whole of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "attr.h"

int dsec__attr_write(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	/* The kernel takes such a text as a whole or not at all. */
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

int dsec__attr_read(int dir, const char *name, char *buf, size_t n)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, buf, n - 1);

	buf[len < 0 ? 0 : len] = '\0';
	return len < 0 ? -errno : (int)len;
}

static uint64_t number(const char *s)
{
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return UINT64_MAX;
	v = strtoull(s, &end, 10);
	return *end == '\0' || *end == '\n' || *end == ' ' ? v : UINT64_MAX;
}

uint64_t dsec__attr_u64(int dir, const char *name)
{
	char buf[32];

	return dsec__attr_read(dir, name, buf, sizeof buf) < 0 ? UINT64_MAX : number(buf);
}

uint64_t dsec__attr_field(int dir, const char *name, const char *key)
{
	size_t n = strlen(key);
	char buf[4096];

	(void)dsec__attr_read(dir, name, buf, sizeof buf); /* an empty text holds no key */
	for (const char *line = buf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == ' ')
			return number(line + n + 1);
	}
	return UINT64_MAX;
}
