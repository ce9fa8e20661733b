"""A small disk for a test that fills it."""
import os
import resource
import subprocess
import tempfile


class SmallDisk:
    """`with SmallDisk(mib) as d:` gives a directory `d.path` on a disk of `mib` MiB: a tmpfs of its
    own where this process may mount
    (root). Elsewhere `d.mounted` is false, and the limit is one on the size of each file, which
    `wrapper()` sets for a server and
    `make_room()` lifts: less than a full disk, but an error of writing and growing all the same.
    """

    def __init__(self, mib):
        self.mib = mib
        self.mounted = False
        self.pid = None

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="nfold-disk-")
        try:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mib}M", "tmpfs", self.path], capture_output=True)
            self.mounted = done.returncode == 0
        except OSError:
            pass
        if not self.mounted:
            print("note: no right to mount: a limit on the size of files stands for a full disk")
        return self

    def __exit__(self, kind, value, trace):
        if self.mounted:
            subprocess.run(["umount", self.path], check=True)
        # And what a server that has it in `beside` keeps outside it.
        subprocess.run(["rm", "-rf", *(self.path + end for end in ("", ".log", ".cnf", ".sock"))], check=True)

    @property
    def ballast(self):
        return os.path.join(self.path, "ballast")

    def load(self, mib):
        """Takes so much room away, to give it back with `make_room`."""
        if self.mounted:
            with open(self.ballast, "wb") as f:
                os.posix_fallocate(f.fileno(), 0, mib << 20)

    def fill(self):
        """Takes all the room that is left."""
        if not self.mounted:
            return
        try:
            rest = os.open(self.ballast + ".rest", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError:
            return
        try:
            while os.write(rest, bytes(4096)):
                pass
        except OSError:
            pass
        os.close(rest)

    def limit(self, pid, mib):
        """Without a mount: the process's files end here."""
        if not self.mounted:
            self.pid = pid
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (mib << 20, resource.RLIM_INFINITY))

    def make_room(self):
        """Gives the ballast back."""
        if self.mounted:
            for name in (self.ballast, self.ballast + ".rest"):
                if os.path.exists(name):
                    os.remove(name)
        elif self.pid:
            try:
                resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            except ProcessLookupError:
                pass  # it was killed; the next one has no limit
