#include "probe.h"
int dsec__probe(const char *root, const char *images, struct dsec_probe_item *items, size_t n_items, size_t item_sz, struct dsec_error *err){(void)root;(void)images;(void)items;(void)n_items;(void)item_sz;(void)err;return 0;}
