"""A channel over TLS: which certificates of the source count, and that of the replica. The source
is another Nfold."""

import tempfile

import replica
import server
from certificates import make_certificates
from test_source import OPTIONS, begin, caught_up


def refused(cur, text):
    """Starts the channel, and returns when it cannot connect for this reason."""
    cur.execute("START REPLICA")
    replica.wait(cur, lambda s: text in s["Last_IO_Error"])
    cur.execute("STOP REPLICA")


def follows(src, cur):
    src.execute("INSERT INTO rep.t VALUES (NULL)")
    cur.execute("START REPLICA")
    caught_up(src, cur)
    cur.execute("STOP REPLICA")


def change(cur, **options):
    named = ", ".join(f"SOURCE_{name} = {value!r}" for name, value in options.items())
    cur.execute(f"CHANGE REPLICATION SOURCE TO {named}")


def test_certificates_of_both_sides_count(_):
    with tempfile.TemporaryDirectory() as where:
        path = make_certificates(where, ("source", "replica"), "127.0.0.1")
        tls = {"ssl_ca": path("ca.pem"), "ssl_cert": path("source.pem"), "ssl_key": path("source.key")}
        with server.Server({**OPTIONS, **tls}) as source, server.Server({"server_id": 72}) as other:
            src, cur = begin(source), other.connect().cursor()
            src.execute("CREATE TABLE rep.t (id INT AUTO_INCREMENT PRIMARY KEY)")
            src.execute("SET sql_log_bin = 0")
            src.execute("ALTER USER sb REQUIRE X509")
            src.execute("SET sql_log_bin = 1")
            replica.change(cur, source.port)
            # Without TLS, and without a certificate.
            refused(cur, "Access denied")
            change(cur, SSL=1)
            refused(cur, "Access denied")
            change(cur, SSL_CERT=path("replica.pem"), SSL_KEY=path("replica.key"))
            follows(src, cur)
            # An authority that has not signed the certificate of the source, and one that has.
            change(cur, SSL_CA=path("stranger.pem"))
            refused(cur, "invalid peer certificate")
            change(cur, SSL_CA=path("ca.pem"), SSL_VERIFY_SERVER_CERT=1)
            follows(src, cur)
            s = replica.status(cur)
            assert s["Source_SSL_CA_File"] == path("ca.pem") and s["Source_SSL_Verify_Server_Cert"] == "Yes", s
            assert (s["Source_SSL_Cert"], s["Source_SSL_Key"]) == (path("replica.pem"), path("replica.key")), s
            # The certificate is for another name.
            change(cur, HOST="localhost")
            refused(cur, "not valid for")
            change(cur, SSL_VERIFY_SERVER_CERT=0)
            follows(src, cur)
            change(cur, SSL_CA="", SSL_VERIFY_SERVER_CERT=1)
            refused(cur, "needs SOURCE_SSL_CA")
            change(cur, SSL_CA=path("extensions"))
            refused(cur, "it has no certificate")
            change(cur, SSL_CA=path("none.pem"))
            refused(cur, "cannot use the file")
