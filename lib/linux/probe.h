#include <dsec/node.h>
int dsec__probe(const char *root, const char *images, struct dsec_probe_item *items, size_t n_items, size_t item_sz, struct dsec_error *err);
