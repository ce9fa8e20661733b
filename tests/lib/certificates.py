"""Authorities, keys and certificates, made by the program `openssl`."""

import os
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(where, names=("client", "other"), address=None):
    """An authority `ca`, and for each name a key and a certificate, which is for the IP `address`
    if there is one; `stranger` has signed its own. Returns the paths of files by their names."""
    def path(name):
        return os.path.join(where, name)
    for name in ("ca", "stranger"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/C=SE/O=Nfold/CN={name}",
                "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"))
    with open(path("extensions"), "w") as f:
        f.write("basicConstraints=CA:FALSE\n")
        if address:
            f.write(f"subjectAltName=IP:{address}\n")
    for name in names:
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/C=SE/O=Nfold/CN={name}",
                "-keyout", path(f"{name}.key"), "-out", path(f"{name}.req"))
        openssl("x509", "-req", "-in", path(f"{name}.req"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
                "-days", "2", "-extfile", path("extensions"), "-out", path(f"{name}.pem"))
    return path
