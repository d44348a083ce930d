#include "bits.h"

uint64_t rotl_field(uint64_t x, unsigned width, int n)
{
    if (width < 1 || width > 64)
        return x;
    uint64_t out = width < 64 ? x >> width << width : 0;
    long long shift = n;

    for (unsigned i = 0; i < width; i++) {
        long long w = width, to = ((i + shift) % w + w) % w;
        if (x >> i & 1)
            out |= (uint64_t)1 << to;
    }
    return out;
}

uint32_t rotl32(uint32_t x, int n)
{
    return (uint32_t)rotl_field(x, 32, n);
}

uint32_t reverse32(uint32_t x)
{
    x = x >> 16 | x << 16;
    x = (x & 0xff00ff00u) >> 8 | (x & 0x00ff00ffu) << 8;
    x = (x & 0xf0f0f0f0u) >> 4 | (x & 0x0f0f0f0fu) << 4;
    x = (x & 0xccccccccu) >> 2 | (x & 0x33333333u) << 2;
    return (x & 0xaaaaaaaau) >> 1 | (x & 0x55555555u) << 1;
}

int longest_run(uint64_t x)
{
    int best = 0, now = 0;

    for (int i = 0; i < 64; i++) {
        now = x >> i & 1 ? now + 1 : 0;
        if (now > best)
            best = now;
    }
    return best;
}
