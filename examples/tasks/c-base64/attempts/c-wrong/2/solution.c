#include <string.h>
#include "base64.h"

static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" "abcdefghijklmnopqrstuvwxyz"
                          "0123456789+/";

size_t b64_encode(char *dst, const void *src, size_t n)
{
    const unsigned char *p = src;
    size_t out = 0;

    for (size_t i = 0; i < n; i += 3) {
        unsigned long w = (unsigned long)p[i] << 16;
        if (i + 1 < n)
            w |= (unsigned long)p[i + 1] << 8;
        if (i + 2 < n)
            w |= p[i + 2];
        for (size_t k = 0; k < 4; k++)
            dst[out++] = i + k > n ? '=' : set[w >> (18 - 6 * k) & 63];
    }
    dst[out] = '\0';
    return out;
}

long b64_decode(void *dst, const char *src, size_t n)
{
    unsigned char *q = dst;
    long out = 0;

    if (n % 4 != 0)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        unsigned long w = 0;
        int pad = 0;
        for (size_t k = i; k < i + 4; k++) {
            const char *at = src[k] ? strchr(set, src[k]) : NULL;
            if (src[k] == '=' && k >= n - 2)
                pad++;
            else if (!at)
                return -1;
            w = w << 6 | (at ? (unsigned long)(at - set) : 0);
        }
        if ((pad == 1 && (w & 0xff)) || (pad == 2 && (w & 0xffff)))
            return -1;
        for (int k = 0; k < 3 - pad; k++)
            q[out++] = w >> (16 - 8 * k) & 0xff;
    }
    return out;
}
