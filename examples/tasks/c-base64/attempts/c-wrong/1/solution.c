#include "base64.h"

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t b64_encode(char *dst, const void *src, size_t n)
{
    const unsigned char *p = src;
    char *q = dst;

    for (; n >= 3; n -= 3, p += 3) {
        *q++ = digits[p[0] >> 2];
        *q++ = digits[(p[0] & 3) << 4 | p[1] >> 4];
        *q++ = digits[(p[1] & 15) << 2 | p[2] >> 6];
        *q++ = digits[p[2] & 63];
    }
    if (n) {
        unsigned second = n == 2 ? p[1] : 0;
        *q++ = digits[p[0] >> 2];
        *q++ = digits[(p[0] & 3) << 4 | second >> 4];
        *q++ = n == 2 ? digits[(second & 15) << 2] : '=';
        *q++ = '=';
    }
    *q = '\0';
    return q - dst;
}

static int value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long b64_decode(void *dst, const char *src, size_t n)
{
    unsigned char *q = dst;
    size_t pad = 0;
    unsigned long bits = 0;
    unsigned have = 0;

    if (n % 4)
        return -1;
    while (pad < 2 && pad < n && src[n - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < n - pad; i++) {
        int v = value(src[i]);
        if (v < 0)
            return -1;
        bits = bits << 6 | (unsigned)v;
        have += 6;
        if (have >= 8) {
            have -= 8;
            *q++ = bits >> have & 255;
            bits &= (1ul << have) - 1;
        }
    }
    if (bits)
        return -1;
    return q - (unsigned char *)dst;
}
