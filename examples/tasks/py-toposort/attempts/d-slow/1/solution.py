class CycleError(ValueError):
    pass


def order(needs):
    names = set(needs)
    for others in needs.values():
        names |= set(others)
    done, placed = [], set()
    rest = sorted(names)
    while rest:
        for name in rest:
            if all(other in placed for other in needs.get(name, ())):
                break
        else:
            raise find_cycle(rest, needs)
        rest.remove(name)
        placed.add(name)
        done.append(name)
    return done


def find_cycle(rest, needs):
    path = [rest[0]]
    while True:
        step = [o for o in needs.get(path[-1], ()) if o in rest][0]
        if step in path:
            error = CycleError("cycle")
            error.cycle = path[path.index(step):] + [step]
            return error
        path.append(step)
