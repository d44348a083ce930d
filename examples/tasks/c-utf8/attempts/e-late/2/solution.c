#include "utf8.h"

int utf8_check(const void *src, size_t n, size_t *count, size_t *bad)
{
    static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = src;

    *count = 0;
    for (size_t at = 0; at < n; ++*count) {
        unsigned c = p[at];
        size_t len = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
        unsigned long code = len == 1 ? c : c & (0x7fu >> len);
        int ok = len > 0 && len <= n - at;
        for (size_t i = 1; ok && i < len; i++) {
            ok = (p[at + i] & 0xc0) == 0x80;
            code = code << 6 | (p[at + i] & 0x3f);
        }
        if (!ok || code <= least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
            *bad = at;
            return 0;
        }
        at += len;
    }
    return 1;
}
