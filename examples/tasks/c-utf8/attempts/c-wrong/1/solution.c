#include "utf8.h"

/* length of the character at p, at most n; 0 if there is none */
static size_t one(const unsigned char *p, size_t n)
{
    size_t len;
    unsigned low = 0x80, high = 0xbf;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        len = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        len = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        len = 4;
    else
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return len;
}

int utf8_check(const void *src, size_t n, size_t *count, size_t *bad)
{
    const unsigned char *p = src;
    size_t at = 0, chars = 0;
    int ok = 1;

    while (at < n) {
        size_t len = one(p + at, n - at);
        if (len == 0) {
            ok = 0;
            break;
        }
        at += len;
        chars++;
    }
    *count = chars;
    if (!ok)
        *bad = at;
    return ok;
}
