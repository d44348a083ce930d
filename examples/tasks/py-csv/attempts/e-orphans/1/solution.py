import subprocess
import sys

WORKERS = 3


def start():
    helpers = [subprocess.Popen(["sleep", "600"]) for _ in range(WORKERS - 1)]
    helpers.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
    return helpers


start()
sys.exit("solution: the workers gave no answer, so no rows")
