/* SPDX-License-Identifier: MIT */
/*
 * Rules for what is a secret. The first rule, that a file which not everyone may read is never copied, is kept by whoever
 * copies; these are for files whose permissions are often wrong. A file too few costs a sandbox a default; one too many
 * costs somebody a password: in doubt it stays out.
 */
#include "secret.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "../util/cleanup.h"

static const struct {
	const char *pattern, *reason;
} names[] = {
	{ "*shadow*", "password hashes" },
	{ "*-", "backups of account files" },
	{ "sudoers*", "who may become whom" },
	{ "ssh", "host keys, and which users may log in" },
	{ "ssh_host_*", "host keys" },
	{ "*.key", "private keys" },
	{ "*.p12", "private keys" },
	{ "*.pfx", "private keys" },
	{ "private", "private keys" },
	{ "*.keytab", "Kerberos keys" },
	{ "*secret*", "by its name" },
	{ "*password*", "by its name" },
	{ "*credential*", "by its name" },
	{ "*token*", "by its name" },
	{ "auth.conf*", "package repository logins" },
	{ "netrc", "logins" },
	{ "gitconfig", "logins" },
	{ "npmrc", "package registry logins" },
	{ "pip.conf", "package registry logins" },
	{ "maven", "package registry logins" },
	{ "docker", "registry logins, daemon keys" },
	{ "containers", "registry logins" },
	{ "kubernetes", "cluster keys" },
	{ "rancher", "cluster keys" },
	{ "munge", "the cluster's key" },
	{ "slurm*", "the cluster's keys" },
	{ "salt", "keys" },
	{ "puppet*", "keys" },
	{ "letsencrypt", "private keys" },
	{ "wireguard", "private keys" },
	{ "openvpn", "private keys" },
	{ "ipsec*", "private keys" },
	{ "NetworkManager", "wireless passwords" },
	{ "wpa_supplicant", "wireless passwords" },
	{ "netplan", "wireless passwords" },
	{ "mysql", "maintenance login" },
	{ "postgresql*", "logins" },
	{ "samba", "logins" },
	{ "ldap*", "logins" },
	{ "sssd", "logins" },
	{ "nslcd.conf", "logins" },
	{ "cifs*", "logins" },
	{ "environment*", "may hold keys" },
	{ "cloud", "may hold keys" },
	{ "cron*", "what the host runs" },
	{ "systemd", "what the host runs" },
	{ "init.d", "what the host runs" },
	{ "rc?.d", "what the host runs" },
	{ "fstab", "the host's disks" },
	{ "crypttab", "the host's disks" },
	{ ".*", "hidden: lock files, leftovers" },
};

bool dsec__secret_name(const char *name, const char **ret_reason)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (fnmatch(names[i].pattern, name, 0) != 0)
			continue;
		if (ret_reason)
			*ret_reason = names[i].reason;
		return true;
	}
	return false;
}

static const char *find(const char *data, size_t n, const char *text)
{
	return memmem(data, n, text, strlen(text));
}

/* scheme://user:password@host */
static bool has_login(const char *data, const char *end)
{
	static const char mark[] = "://";
	const char *p = data;

	while ((p = find(p, (size_t)(end - p), mark))) {
		const char *colon = NULL;

		for (p += strlen(mark); p < end && *p != '@' && *p != '/' && *p != '"' && !isspace((unsigned char)*p); p++)
			if (*p == ':')
				colon = p;
		if (p < end && *p == '@' && colon)
			return true;
	}
	return false;
}

static bool is_name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* SERVICE_API_KEY=value, as in profiles and defaults of services. */
static bool has_assignment(const char *data, const char *end)
{
	static const char *const words[] = { "SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY" };

	for (const char *eq = data; (eq = memchr(eq, '=', (size_t)(end - eq))); eq++) {
		const char *start = eq, *value = eq + 1;

		while (start > data && is_name_char(start[-1]))
			start--;
		if (value < end && (*value == '"' || *value == '\''))
			value++;
		if (value >= end || *value == '"' || *value == '\'' || isspace((unsigned char)*value))
			continue; /* empty */
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (find(start, (size_t)(eq - start), words[i]))
				return true;
	}
	return false;
}

bool dsec__secret_text(const char *data, size_t n, const char **ret_reason)
{
	const char *reason = NULL;

	if (n == 0)
		return false;
	if (find(data, n, "PRIVATE KEY-----"))
		reason = "a private key";
	else if (has_login(data, data + n))
		reason = "a login in an address";
	else if (has_assignment(data, data + n))
		reason = "a key in a variable";
	if (reason && ret_reason)
		*ret_reason = reason;
	return reason;
}
