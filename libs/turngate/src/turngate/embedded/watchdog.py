"""Where the kernel cannot tie a process to its parent (macOS), this runs the program and ends it with the parent."""

import os
import signal
import subprocess
import sys
import time


def watch(argv: list[str], parent: int) -> int:
    program = subprocess.Popen(argv)  # noqa: S603 - the supervisor's own command line
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda received, _frame: program.send_signal(received))
    while os.getppid() == parent:
        try:
            return program.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            continue
    program.terminate()
    time.sleep(5)
    program.kill()
    return 1


if __name__ == "__main__":
    raise SystemExit(watch(sys.argv[1:], os.getppid()))
