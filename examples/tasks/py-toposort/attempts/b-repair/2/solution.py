import heapq


class CycleError(ValueError):
    def __init__(self, cycle):
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


def order(needs):
    waits = {}
    for name, others in needs.items():
        waits.setdefault(name, set()).update(others)
        for other in others:
            waits.setdefault(other, set())
    users = {name: [] for name in waits}
    for name, others in waits.items():
        for other in others:
            users[other].append(name)
    left = {name: len(others) for name, others in waits.items()}
    ready = [name for name in left if left[name] == 0]
    heapq.heapify(ready)
    done = []
    while ready:
        name = heapq.heappop(ready)
        done.append(name)
        del left[name]
        for user in users[name]:
            left[user] -= 1
            if left[user] == 0:
                heapq.heappush(ready, user)
    if left:
        raise CycleError(_cycle(left, waits))
    return done


def _cycle(left, waits):
    path, name = [], min(left)
    while name not in path:
        path.append(name)
        name = min(other for other in waits[name] if other in left)
    return path[path.index(name):] + [name]
