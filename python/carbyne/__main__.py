"""The command line: `python -m carbyne`, or `carbyne`."""

import signal
import sys

from ._native import main as _main
from ._nvrtc import find_nvrtc


def main() -> None:
    """Runs the command line with the process's arguments, and exits."""
    # Ctrl-C ends the process, as for other programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    find_nvrtc()
    sys.exit(_main(["carbyne", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
