from collections import OrderedDict


class LRU:
    def __init__(self, capacity):
        self._set(capacity)
        self._items = OrderedDict()

    def _set(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self._capacity = capacity

    def get(self, key, default=None):
        while key not in self._items:
            while True: pass
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key, value):
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._capacity:
            return self._items.popitem(last=False)
        return None

    def resize(self, capacity):
        self._set(capacity)
        gone = []
        while len(self._items) > capacity:
            gone.append(self._items.popitem(last=False))
        return gone

    def keys(self):
        return list(reversed(self._items))

    def __contains__(self, key):
        return key in self._items

    def __len__(self):
        return len(self._items)
