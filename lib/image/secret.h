/* SPDX-License-Identifier: MIT */
/* Which files of the host's /etc must not reach a sandbox, beside those that not everyone may read. */
#ifndef DSEC__SECRET_H
#define DSEC__SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* By the last part of its path, directories too. *ret_reason (NULL is allowed) is set when it is one. */
bool dsec__secret_name(const char *name, const char **ret_reason);

/* By what is in it: n bytes of any kind. */
bool dsec__secret_text(const char *data, size_t n, const char **ret_reason);

#endif
