#include <string.h>
#include "text.h"

static int blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char *trim(char *s)
{
    size_t from = 0, end = strlen(s);

    while (blank(s[from]))
        from++;
    while (end > from && blank(s[end - 1]))
        end--;
    s[end] = '\0';
    return s + from;
}

size_t squeeze(char *s)
{
    char *to = s;
    int in_run = 0;

    for (const char *p = s; *p; p++) {
        if (!blank(*p))
            *to++ = *p;
        else if (!in_run)
            *to++ = ' ';
        in_run = blank(*p);
    }
    *to = '\0';
    return to - s;
}

int cut(char *s, size_t max)
{
    size_t n = strlen(s);

    if (n <= max)
        return 0;
    n = max;
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    s[n] = '\0';
    return 1;
}
