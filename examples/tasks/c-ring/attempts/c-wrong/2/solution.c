#include <string.h>
#include "ring.h"

void ring_init(struct ring *r, void *mem, size_t cap)
{
    r->mem = mem;
    r->cap = cap;
    r->start = 0;
    r->used = 0;
}

size_t ring_write(struct ring *r, const void *src, size_t n)
{
    if (n > r->cap - r->used)
        n = r->cap - r->used;
    if (n == 0)
        return 0;
    size_t at = r->start + r->used;
    if (at >= r->cap)
        at -= r->cap;
    size_t first = n < r->cap - at ? n : r->cap - at;
    memcpy(r->mem + at, src, first);
    memcpy(r->mem, (const unsigned char *)src + first, n - first);
    r->used += n;
    return n;
}

size_t ring_peek(const struct ring *r, size_t skip, void *dst, size_t n)
{
    if (skip >= r->used)
        return 0;
    if (n > r->used)
        n = r->used;
    if (n == 0)
        return 0;
    size_t at = (r->start + skip) % r->cap;
    size_t first = n < r->cap - at ? n : r->cap - at;
    memcpy(dst, r->mem + at, first);
    memcpy((unsigned char *)dst + first, r->mem, n - first);
    return n;
}

size_t ring_read(struct ring *r, void *dst, size_t n)
{
    n = ring_peek(r, 0, dst, n);
    if (n) {
        r->start = (r->start + n) % r->cap;
        r->used -= n;
    }
    return n;
}
