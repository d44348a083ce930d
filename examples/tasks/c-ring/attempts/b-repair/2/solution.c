#include "ring.h"

void ring_init(struct ring *r, void *mem, size_t cap)
{
    *r = (struct ring){ .mem = mem, .cap = cap };
}

size_t ring_write(struct ring *r, const void *src, size_t n)
{
    const unsigned char *p = src;
    size_t done = 0;

    while (done < n && r->used < r->cap) {
        r->mem[(r->start + r->used) % r->cap] = p[done++];
        r->used++;
    }
    return done;
}

size_t ring_peek(const struct ring *r, size_t skip, void *dst, size_t n)
{
    unsigned char *p = dst;
    size_t done = 0;

    for (; skip < r->used && done < n; skip++)
        p[done++] = r->mem[(r->start + skip) % r->cap];
    return done;
}

size_t ring_read(struct ring *r, void *dst, size_t n)
{
    size_t done = ring_peek(r, 0, dst, n);

    for (size_t i = 0; i < done; i++)
        r->start = r->start + 1 == r->cap ? 0 : r->start + 1;
    r->used -= done;
    return done;
}
