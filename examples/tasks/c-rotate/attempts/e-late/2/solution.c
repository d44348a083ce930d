#include "bits.h"

/* n reduced to 0 .. width - 1 */
static unsigned reduce(int n, unsigned width)
{
    return (unsigned)n % width;
}

uint32_t rotl32(uint32_t x, int n)
{
    unsigned k = reduce(n, 32);

    return k ? x << k | x >> (32 - k) : x;
}

uint64_t rotl_field(uint64_t x, unsigned width, int n)
{
    if (width == 0 || width > 64)
        return x;
    uint64_t mask = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1;
    uint64_t low = x & mask;
    unsigned k = reduce(n, width);

    if (k)
        low = (low << k | low >> (width - k)) & mask;
    return (x & ~mask) | low;
}

uint32_t reverse32(uint32_t x)
{
    uint32_t out = 0;

    for (int i = 0; i < 32; i++)
        out |= (x >> i & 1) << (31 - i);
    return out;
}

int longest_run(uint64_t x)
{
    int n = 0;

    for (; x; x &= x << 1)
        n++;
    return n;
}
