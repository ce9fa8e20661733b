"""A server that a suite runs on, and the fetching of a suite's sources."""

import os
import shutil
import subprocess
import tarfile

import pymysql


class Target:
    """A server under test. The user sb, with the password sb, may do anything there."""

    user = password = "sb"

    def __init__(self, name, host, port):
        self.name, self.host, self.port = name, host, port

    def connect(self):
        return pymysql.connect(host=self.host, port=self.port, user=self.user, password=self.password,
                               charset="utf8mb4", autocommit=True)

    def execute(self, *statements):
        with self.connect() as conn, conn.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def drop(self, databases):
        self.execute(*(f"DROP DATABASE IF EXISTS `{name}`" for name in databases))

    def create(self, databases):
        self.execute(*(f"CREATE DATABASE `{name}`" for name in databases))

    def new_file(self, cache, suffix):
        """A path in `cache` that belongs to this server alone; an older file there is removed."""
        path = os.path.join(cache, f"{self.name.lower()}{suffix}")
        if os.path.exists(path):
            os.remove(path)
        return path


def python_environment(cache, *packages):
    """Makes a virtual environment in `cache`, once for each list of packages."""
    directory = os.path.join(cache, "venv")
    stamp, wanted = os.path.join(directory, "packages"), "\n".join(packages)
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", directory], check=True)
    subprocess.run([os.path.join(directory, "bin", "pip"), "install", "-q", *packages], check=True)
    with open(stamp, "w") as f:
        f.write(wanted)


def python_source(cache, package, version, unpacked=None):
    """Fetches and unpacks the source package, once for each version. Returns its directory, whose
    name is `unpacked`, or that of the package and its version."""
    directory = os.path.join(cache, unpacked or f"{package}-{version}")
    if os.path.exists(directory):
        return directory
    downloads = os.path.join(cache, "downloads")
    shutil.rmtree(downloads, ignore_errors=True)
    subprocess.run([os.path.join(cache, "venv", "bin", "pip"), "download", "-q", "--no-deps", "--no-binary", package,
                    "--dest", downloads, f"{package}=={version}"], check=True)
    for name in os.listdir(downloads):
        with tarfile.open(os.path.join(downloads, name)) as archive:
            archive.extractall(downloads)
    os.rename(os.path.join(downloads, os.path.basename(directory)), directory)
    shutil.rmtree(downloads)
    return directory


def python(cache):
    """The Python of the suite's virtual environment."""
    return os.path.join(cache, "venv", "bin", "python")
