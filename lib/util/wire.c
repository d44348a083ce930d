/* SPDX-License-Identifier: MIT */
/* Encoder and decoder of our messages. The decoder reads what other processes wrote: it trusts no length. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#define NULL_STR UINT32_MAX

void dsec__buf_done(struct dsec__buf *b)
{
	free(b->data);
	*b = (struct dsec__buf){ 0 };
}

uint8_t *dsec__buf_reserve(struct dsec__buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *p;

	if (b->failed || n > SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return NULL;
	}
	while (cap < b->len + n)
		cap *= 2;
	if (cap != b->cap) {
		p = realloc(b->data, cap);
		if (!p) {
			b->failed = true;
			return NULL;
		}
		b->data = p;
		b->cap = cap;
	}
	return b->data + b->len;
}

void dsec__buf_put(struct dsec__buf *b, const void *data, size_t n)
{
	uint8_t *p = n ? dsec__buf_reserve(b, n) : NULL;

	if (p) {
		memcpy(p, data, n);
		b->len += n;
	}
}

void dsec__buf_drop_front(struct dsec__buf *b, size_t n)
{
	if (n >= b->len) {
		b->len = 0;
		return;
	}
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void dsec__put_u16(struct dsec__buf *b, uint16_t v)
{
	uint8_t x[2] = { (uint8_t)v, (uint8_t)(v >> 8) };

	dsec__buf_put(b, x, sizeof x);
}

void dsec__put_u32(struct dsec__buf *b, uint32_t v)
{
	uint8_t x[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };

	dsec__buf_put(b, x, sizeof x);
}

void dsec__put_u64(struct dsec__buf *b, uint64_t v)
{
	dsec__put_u32(b, (uint32_t)v);
	dsec__put_u32(b, (uint32_t)(v >> 32));
}

void dsec__put_bytes(struct dsec__buf *b, const void *data, size_t n)
{
	if (n >= NULL_STR) {
		b->failed = true;
		return;
	}
	dsec__put_u32(b, (uint32_t)n);
	dsec__buf_put(b, data, n);
}

void dsec__put_str(struct dsec__buf *b, const char *s)
{
	if (!s)
		dsec__put_u32(b, NULL_STR);
	else
		dsec__put_bytes(b, s, strlen(s) + 1);
}

void dsec__put_strv(struct dsec__buf *b, const char *const *v)
{
	uint32_t n = 0;

	while (v && v[n])
		n++;
	dsec__put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		dsec__put_str(b, v[i]);
}

static const uint8_t *take(struct dsec__reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return p;
}

uint16_t dsec__get_u16(struct dsec__reader *r)
{
	const uint8_t *p = take(r, 2);

	return p ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

uint32_t dsec__get_u32(struct dsec__reader *r)
{
	const uint8_t *p = take(r, 4);

	return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;
}

uint64_t dsec__get_u64(struct dsec__reader *r)
{
	uint64_t low = dsec__get_u32(r);

	return low | (uint64_t)dsec__get_u32(r) << 32;
}

const uint8_t *dsec__get_bytes(struct dsec__reader *r, size_t *ret_n)
{
	size_t n = dsec__get_u32(r);
	const uint8_t *p = take(r, n);

	*ret_n = p ? n : 0;
	return p;
}

const char *dsec__get_str(struct dsec__reader *r)
{
	uint32_t n = dsec__get_u32(r);
	const uint8_t *p;

	if (r->bad || n == NULL_STR)
		return NULL;
	p = take(r, n);
	if (!p || n == 0 || memchr(p, 0, n) != p + n - 1) {
		r->bad = true;
		return NULL;
	}
	return (const char *)p;
}

char **dsec__get_strv(struct dsec__reader *r)
{
	uint32_t n = dsec__get_u32(r);
	char **v;

	/* Each string takes at least its length and a NUL, which bounds what a short message can make us allocate. */
	if (r->bad || n > r->left / 5) {
		r->bad = true;
		return NULL;
	}
	v = calloc((size_t)n + 1, sizeof *v);
	for (uint32_t i = 0; v && i < n; i++) {
		v[i] = (char *)(uintptr_t)dsec__get_str(r); /* const only because the reader promises not to write */
		if (!v[i])
			r->bad = true;
	}
	r->no_memory |= !v;
	if (!v || r->bad) {
		r->bad = true;
		free(v);
		return NULL;
	}
	return v;
}
