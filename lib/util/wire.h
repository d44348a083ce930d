/* SPDX-License-Identifier: MIT */
/*
 * The encoding that our processes speak and that the spec file holds: fields in a fixed order, little-endian integers,
 * strings and byte strings as a 32-bit length and that many bytes. A writer remembers its first failure and a reader its
 * first bad field, so that a run of puts or gets needs one check at its end.
 */
#ifndef DSEC__WIRE_H
#define DSEC__WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing byte string. All zero is an empty one. */
struct dsec__buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool failed; /* memory ran out: contents are not to be used */
};

void dsec__buf_done(struct dsec__buf *b);
/* Room for n more bytes; NULL (and failed) when memory is out. Does not change len. */
uint8_t *dsec__buf_reserve(struct dsec__buf *b, size_t n);
void dsec__buf_put(struct dsec__buf *b, const void *data, size_t n);
void dsec__buf_drop_front(struct dsec__buf *b, size_t n);
void dsec__put_u16(struct dsec__buf *b, uint16_t v);
void dsec__put_u32(struct dsec__buf *b, uint32_t v);
void dsec__put_u64(struct dsec__buf *b, uint64_t v);
void dsec__put_bytes(struct dsec__buf *b, const void *data, size_t n);
/* NULL and "" are told apart. */
void dsec__put_str(struct dsec__buf *b, const char *s);
/* Array of strings that ends with NULL; NULL is sent as an empty array. */
void dsec__put_strv(struct dsec__buf *b, const char *const *v);

struct dsec__reader {
	const uint8_t *p;
	size_t left;
	bool bad; /* a field did not fit: every later get gives zero */
	bool no_memory; /* why it is bad */
};

uint16_t dsec__get_u16(struct dsec__reader *r);
uint32_t dsec__get_u32(struct dsec__reader *r);
uint64_t dsec__get_u64(struct dsec__reader *r);
/* Points into the reader's memory. */
const uint8_t *dsec__get_bytes(struct dsec__reader *r, size_t *ret_n);
/* A string in the reader's memory, which must outlive it: the encoding holds the NUL. A NUL inside makes it bad. */
const char *dsec__get_str(struct dsec__reader *r);
/* An array ending with NULL, one allocation (free() it) whose strings lie in the reader's memory. NULL when bad. */
char **dsec__get_strv(struct dsec__reader *r);

#endif
