"""The command `hf df11`: it runs df11-convert, which the wheel has put next to this Python."""

import os
import subprocess
import sys
import sysconfig


def main():
    program = os.path.join(sysconfig.get_path("scripts"), "df11-convert")
    if os.name == "nt":
        sys.exit(subprocess.call([program + ".exe", *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])
