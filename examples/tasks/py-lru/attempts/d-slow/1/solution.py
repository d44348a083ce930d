class LRU:
    """Keeps (key, value) pairs in a list, the most recent first."""

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError(capacity)
        self.capacity = capacity
        self.pairs = []

    def _find(self, key):
        for i, pair in enumerate(self.pairs):
            if pair[0] == key:
                return i
        return -1

    def get(self, key, default=None):
        i = self._find(key)
        if i < 0:
            return default
        pair = self.pairs.pop(i)
        self.pairs.insert(0, pair)
        return pair[1]

    def put(self, key, value):
        i = self._find(key)
        if i >= 0:
            self.pairs.pop(i)
        self.pairs.insert(0, (key, value))
        if len(self.pairs) > self.capacity:
            return self.pairs.pop()
        return None

    def resize(self, capacity):
        if capacity < 1:
            raise ValueError(capacity)
        self.capacity = capacity
        gone = self.pairs[capacity:][::-1]
        del self.pairs[capacity:]
        return gone

    def keys(self):
        return [key for key, value in self.pairs]

    def __contains__(self, key):
        return self._find(key) >= 0

    def __len__(self):
        return len(self.pairs)
