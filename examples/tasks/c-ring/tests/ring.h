#ifndef RING_H
#define RING_H

#include <stddef.h>

struct ring {
    unsigned char *mem;
    size_t cap, start, used;
};

void ring_init(struct ring *r, void *mem, size_t cap);
size_t ring_write(struct ring *r, const void *src, size_t n);
size_t ring_read(struct ring *r, void *dst, size_t n);
size_t ring_peek(const struct ring *r, size_t skip, void *dst, size_t n);

#endif
