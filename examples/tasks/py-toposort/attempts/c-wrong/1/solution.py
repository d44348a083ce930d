class CycleError(ValueError):
    def __init__(self, cycle):
        super().__init__("cycle")
        self.cycle = cycle


def order(needs):
    done = []

    def visit(name, path):
        if name in path:
            raise CycleError(path[path.index(name):] + [name])
        if name in done:
            return
        for other in sorted(needs.get(name, ())):
            visit(other, path + [name])
        done.append(name)

    for name in sorted(needs):
        visit(name, [])
    return done
