"""REQUIRE X509, SUBJECT, ISSUER and CIPHER, with clients that have certificates, and partial
revokes after a restart."""
import os
import ssl
import tempfile

import pymysql
import server
from certificates import make_certificates


def test_accounts_require_what_certificates_say(_):
    with tempfile.TemporaryDirectory() as where:
        path = make_certificates(where)

        def login(srv, user, name=None, cipher=None):
            """The cipher of a login with a certificate, or the error."""
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if name:
                context.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
            if cipher:
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                context.set_ciphers(cipher)
            try:
                with srv.connect(user=user, ssl=context) as conn:
                    return conn._sock.cipher()[0]
            except pymysql.Error as e:
                return e.args[0]

        with server.Server({"ssl_ca": path("ca.pem")}) as srv:
            subject, issuer = "/C=SE/O=Nfold/CN=client", "/C=SE/O=Nfold/CN=ca"
            with srv.connect() as admin, admin.cursor() as cur:
                for user, rule in {"s": "SSL", "x": "X509", "b": f"SUBJECT '{subject}'", "i": f"ISSUER '{issuer}'",
                                   "w": "ISSUER '/CN=ca'", "a": f"SUBJECT '{subject}' AND ISSUER '{issuer}'",
                                   "c": "CIPHER 'ECDHE-ECDSA-AES128-GCM-SHA256'"}.items():
                    cur.execute(f"CREATE USER {user} REQUIRE {rule}")
            for user in "sxbiwac":
                assert pymysql_error(srv, user) == 1045, user
            assert isinstance(login(srv, "s"), str)
            for user, allowed in {"x": "client other", "b": "client", "i": "client other", "w": "", "a": "client"}.items():
                for name in (None, "client", "other"):
                    found = login(srv, user, name)
                    if name and name in allowed.split():
                        assert isinstance(found, str), (user, name, found)
                    else:
                        assert found == 1045, (user, name, found)
            # The TLS layer refuses a certificate of another authority.
            assert not isinstance(login(srv, "x", "stranger"), str)
            assert login(srv, "c", cipher="ECDHE-ECDSA-AES128-GCM-SHA256") == "ECDHE-ECDSA-AES128-GCM-SHA256"
            assert login(srv, "c", cipher="ECDHE-ECDSA-AES256-GCM-SHA384") == 1045
            assert login(srv, "c") == 1045
        # Without authorities the server requests no certificate.
        with server.Server() as srv:
            with srv.connect() as admin, admin.cursor() as cur:
                cur.execute("CREATE USER x REQUIRE X509")
            assert login(srv, "x", "client") == 1045


def pymysql_error(srv, user):
    """The error of a login without TLS."""
    try:
        srv.connect(user=user, ssl_disabled=True).close()
    except pymysql.Error as e:
        return e.args[0]
    return None


def test_partial_revokes_outlive_the_option(_):
    with tempfile.TemporaryDirectory() as where:
        datadir = os.path.join(where, "data")
        with server.Server(datadir=datadir) as srv, srv.connect() as admin, admin.cursor() as cur:
            cur.execute("CREATE DATABASE d")
            cur.execute("SET GLOBAL partial_revokes = ON")
            cur.execute("CREATE USER u")
            cur.execute("GRANT SELECT ON *.* TO u")
            cur.execute("REVOKE SELECT ON d.* FROM u")
        with server.Server(datadir=datadir) as srv, srv.connect() as admin, admin.cursor() as cur:
            cur.execute("SELECT @@partial_revokes")
            assert cur.fetchall() == ((1,),)
            cur.execute("SHOW GRANTS FOR u")
            assert ("REVOKE SELECT ON `d`.* FROM `u`@`%`",) in cur.fetchall()
            try:
                srv.connect(user="u", database="d").close()
                raise AssertionError("the database is open")
            except pymysql.Error as e:
                assert e.args[0] == 1044, e
