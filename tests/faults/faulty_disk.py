"""A disk that fails at the n-th operation of a command, in Python and in C code: builds and steers faulty_disk.c."""

import errno
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).with_name("faulty_disk.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="needs Linux and a C compiler"
)
CHANGE, OPEN, BYTES = range(3)


class Fault(NamedTuple):
    """What goes wrong: `kind`, `error` and `lasting` as in faulty_disk.c."""

    kind: int
    error: int
    lasting: int = 0


FAULTS = {
    "full": Fault(CHANGE, errno.ENOSPC, 1),  # the disk is full from then on; the first write is cut short
    "EIO": Fault(CHANGE, errno.EIO),
    "EMFILE": Fault(OPEN, errno.EMFILE),
    "short": Fault(BYTES, 0),  # half of it is written, and no error: whoever writes goes on
}

# Imports everything once; each command runs in a child of its own.
SERVER = """
import json, os, sys
import matplotlib.font_manager, torch, torch._dynamo, pyarrow.parquet
torch.set_num_threads(1)
from nearkin.cli.app import main
print("ready", flush=True)
for line in sys.stdin:
    words, output = json.loads(line)
    child = os.fork()
    if child == 0:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        sys.argv = ["nearkin", *words]
        code = 99
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 98
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    said: str
    operations: tuple[int, int, int]  # of each kind


class FaultyDisk:
    """A folder on a disk that fails when it is told to.

    Parameters:
        folder: where all is kept; operations in `folder/disk` are counted.
    """

    def __init__(self, folder):
        self.root, self._plan, self._output = folder / "disk", folder / "plan", folder / "output"
        library = folder / "faulty_disk.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self.root.mkdir()
        self.fine()
        self.environment = os.environ | {
            "LD_PRELOAD": str(library),
            "FAULTY_PLAN": str(self._plan),
            "FAULTY_ROOT": str(self.root) + "/",
            "NEARKIN_CACHE": str(self.root / "cache"),
            "NEARKIN_FSYNC": "1",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "500",
        }
        self._server = None

    def fine(self):
        self.fail(Fault(CHANGE, 0), 0)

    def fail(self, fault, at):
        content = struct.pack("7l", 0, 0, 0, fault.kind, at, fault.error, fault.lasting)
        with open(self._plan, "r+b" if self._plan.exists() else "wb") as file:  # the same file: it is mapped
            file.write(content)

    def run(self, words):
        """A command of nearkin, in a child of a process that has imported everything. Workers of a study inherit the
        disk."""
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert self._server.stdout.readline() == "ready\n"
        self._server.stdin.write(json.dumps([words, str(self._output)]) + "\n")
        self._server.stdin.flush()
        return self._ended(int(self._server.stdout.readline()))

    def _ended(self, code):
        return Ended(code, self._output.read_text(), struct.unpack("7l", self._plan.read_bytes())[:3])

    def clear(self):
        shutil.rmtree(self.root)
        self.root.mkdir()

    def close(self):
        if self._server is not None:
            self._server.stdin.close()
            self._server.wait()
