/* SPDX-License-Identifier: MIT */
/* Backends that this version names and does not have: their row answers every create with -ENOTSUP and the reason. */
#include <errno.h>

#include "../core/core.h"
#include "../util/error.h"

#define ABSENT(name) \
	dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS, "backend: \"" name "\" is not part of dsec " DSEC_VERSION)

static int function_probe(struct dsec_node *node, struct dsec_error *err)
{
	(void)node;
	return ABSENT("function");
}

static int microvm_probe(struct dsec_node *node, struct dsec_error *err)
{
	(void)node;
	return ABSENT("microvm");
}

static int fullvm_probe(struct dsec_node *node, struct dsec_error *err)
{
	(void)node;
	return ABSENT("fullvm");
}

/* No other slot is reached after probe has refused, and no capability is set. */
const struct dsec_backend_ops dsec__backend_function = {
	.sz = sizeof(struct dsec_backend_ops), .name = "function", .probe = function_probe,
};
const struct dsec_backend_ops dsec__backend_microvm = {
	.sz = sizeof(struct dsec_backend_ops), .name = "microvm", .probe = microvm_probe,
};
const struct dsec_backend_ops dsec__backend_fullvm = {
	.sz = sizeof(struct dsec_backend_ops), .name = "fullvm", .probe = fullvm_probe,
};
