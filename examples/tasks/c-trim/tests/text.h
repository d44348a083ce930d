#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

char *trim(char *s);
size_t squeeze(char *s);
int cut(char *s, size_t max);

#endif
