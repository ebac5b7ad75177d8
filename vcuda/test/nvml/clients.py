# SPDX-License-Identifier: Apache-2.0
"""clients.py pynvml | nvtop PROGRAM: what these programs of others show of the GPUs that NVML has, on one line each."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time


def show_pynvml():
    import pynvml

    def text(value):
        return value.decode() if isinstance(value, bytes) else value

    pynvml.nvmlInit()
    for i in range(pynvml.nvmlDeviceGetCount()):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(i)
        memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
        print(text(pynvml.nvmlDeviceGetName(gpu)), text(pynvml.nvmlDeviceGetUUID(gpu)), memory.total,
              pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu, len(pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)))
    pynvml.nvmlShutdown()


def show_nvtop(program):
    """It wants a terminal, and ends by the key q."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(program, [program, "-d", "2"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    shown, until = b"", time.monotonic() + 40
    while time.monotonic() < until and len(re.findall(rb"\d+%\]", shown)) < 2:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
    os.write(terminal, b"q")
    print(re.sub(r"\s+", " ", re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()].|\x1b.", b" ", shown).decode(errors="replace")))


if sys.argv[1] == "pynvml":
    show_pynvml()
else:
    show_nvtop(sys.argv[2])
