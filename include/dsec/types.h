/* SPDX-License-Identifier: MIT */
/*
 * Version, export and structure rules that every dsec header shares.
 *
 * Option structures begin with `size_t sz`. A caller sets it to sizeof of the structure it was compiled with (the
 * DSEC_INIT macro does) and leaves every field that it does not use at zero: zero is always the default. The library
 * reads only what the caller knows; a larger structure from a newer caller is accepted as long as the part that this
 * library does not know is zero, and is refused with -E2BIG otherwise. A NULL pointer to options means all defaults.
 *
 * Result structures work the other way round: the caller sets `sz`, the library fills what fits.
 *
 * Every call that can fail returns 0 or a non-negative payload on success, and a negative errno value on failure;
 * errno itself is never changed. Bits of a `flags` field that have no name here are refused with -EINVAL.
 */
#ifndef DSEC_TYPES_H
#define DSEC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define DSEC_VERSION_MAJOR 0
#define DSEC_VERSION_MINOR 1
#define DSEC_VERSION_PATCH 0
#define DSEC_VERSION "0.1.0"

#ifdef __cplusplus
#define DSEC_BEGIN_DECLS extern "C" {
#define DSEC_END_DECLS }
#else
#define DSEC_BEGIN_DECLS
#define DSEC_END_DECLS
#endif

#if defined(__GNUC__)
#define DSEC_API __attribute__((visibility("default")))
#define DSEC_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DSEC_API
#define DSEC_MUST_CHECK
#endif

/* Declares a structure with its size and some fields set, all else zero:
   DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 500); */
#define DSEC_INIT(type, var, ...) type var = { .sz = sizeof(type), __VA_ARGS__ }

DSEC_BEGIN_DECLS

struct dsec_error;
struct dsec_node;
struct dsec_sandbox;
struct dsec_exec;

/* The version of the library that is loaded, such as "0.1.0"; compare with DSEC_VERSION, which is the header's. */
DSEC_API const char *dsec_version(void);

DSEC_END_DECLS

#endif
