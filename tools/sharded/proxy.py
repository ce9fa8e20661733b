"""Apache ShardingSphere-Proxy from Maven's central repository, in front of servers that each hold a
part of the rows."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCES = ("pom.xml", "Proxy.java")

SERVER = """\
mode:
  type: Standalone
  repository:
    type: File
    props:
      path: {directory}/rules
  overwrite: false
rules:
  - !AUTHORITY
    users:
      - "{user}@%:{password}"
    provider:
      type: ALL_PRIVILEGES_PERMITTED
  - !TRANSACTION
    defaultType: XA
    providerType: Atomikos
props:
  max-connections-size-per-query: 1
  proxy-frontend-flush-threshold: 128
"""

# A shard has the number of its data source. A statement with a range reads all shards.
SHARDED = """\
schemaName: {database}
dataSources:
"""
DATA_SOURCE = """\
  shard_{number}:
    url: jdbc:mysql://127.0.0.1:{port}/{database}?sslMode=DISABLED&allowPublicKeyRetrieval=true&connectionTimeZone=UTC
    username: "{user}"
    password: "{password}"
    connectionTimeoutMilliseconds: 10000
    idleTimeoutMilliseconds: 60000
    maxLifetimeMilliseconds: 1800000
    maxPoolSize: {connections}
    minPoolSize: 1
"""

# The coordinator's log says which transactions commit, so it is durable beside the rows. A prepared
# branch without an entry there is rolled back after `max_timeout`.
TRANSACTIONS = """\
com.atomikos.icatch.service=com.atomikos.icatch.standalone.UserTransactionServiceFactory
com.atomikos.icatch.tm_unique_name=nfold-sharded
com.atomikos.icatch.log_base_dir={directory}/transactions
com.atomikos.icatch.log_base_name=xa
com.atomikos.icatch.serial_jta_transactions=false
com.atomikos.icatch.max_actives=10000
com.atomikos.icatch.default_jta_timeout={timeout_ms}
com.atomikos.icatch.max_timeout={timeout_ms}
com.atomikos.icatch.recovery_delay={recovery_ms}
com.atomikos.icatch.oltp_retry_interval=2000
"""

LOGGING = """\
<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd HH:mm:ss.SSS} %-5level %logger{24} %msg%n%ex{short}</pattern></encoder>
  </appender>
  <logger name="com.atomikos" level="warn"/>
  <root level="info"><appender-ref ref="console"/></root>
</configuration>
"""


def install(*packages):
    """Installs Debian's packages, as root or by sudo."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    for words in (["-q", "update"], ["-q", "-y", "install", "--no-install-recommends", *packages]):
        subprocess.run([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *words], check=True, stdout=subprocess.DEVNULL)


def libraries():
    """Fetches the proxy and compiles its main class, once for each version of the sources here.
    Returns the class path."""
    cache = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "sharded")
    stamp, jars, classes = (os.path.join(cache, name) for name in ("installed", "libraries", "classes"))
    contents = b"".join(open(os.path.join(HERE, name), "rb").read() for name in SOURCES)
    wanted = hashlib.sha256(contents).hexdigest()
    if not os.path.exists(stamp) or open(stamp).read() != wanted:
        if not shutil.which("javac") or not shutil.which("mvn"):
            install("default-jdk-headless", "maven")
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        print("fetching ShardingSphere-Proxy (70 MB)", flush=True)
        shutil.copy(os.path.join(HERE, "pom.xml"), cache)
        subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"],
                       cwd=cache, check=True, stdin=subprocess.DEVNULL)
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", os.path.join(jars, "*"), os.path.join(HERE, "Proxy.java")], check=True)
        with open(stamp, "w") as f:
            f.write(wanted)
    return os.pathsep.join([classes, os.path.join(jars, "*")])


class Proxy:
    """A proxy process on 127.0.0.1.

    directory: its configuration, its sharding rules, the log of its transactions, its messages.
    ports: of the servers; each has the database. The user is the same on servers and proxy.
    timeout_ms: how long a transaction may take. recovery_ms: how often it looks for branches of
    transactions that a crash interrupted."""

    def __init__(self, directory, ports, port, database, user="root", password="", rules="", connections=50, timeout_ms=60000, recovery_ms=10000):
        self.directory, self.port, self.process = os.path.abspath(directory), port, None
        values = dict(directory=self.directory, database=database, user=user, password=password, connections=connections,
                      timeout_ms=timeout_ms, recovery_ms=recovery_ms)
        sharded = SHARDED.format(**values)
        for number, node in enumerate(ports):
            sharded += DATA_SOURCE.format(number=number, port=node, **values)
        for name in ("conf", "transactions", "rules"):
            os.makedirs(os.path.join(self.directory, name), exist_ok=True)
        for name, text in (("conf/server.yaml", SERVER.format(**values)), ("conf/config-sharded.yaml", sharded + rules),
                           ("transactions.properties", TRANSACTIONS.format(**values)), ("logback.xml", LOGGING)):
            with open(os.path.join(self.directory, name), "w") as f:
                f.write(text)

    def start(self, timeout=120):
        """Starts the process and waits until it accepts connections."""
        path = os.pathsep.join([self.directory, libraries()])
        command = ["java", "-Xmx1g", "-Djava.awt.headless=true", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
                   "-cp", path, "Proxy", "127.0.0.1", str(self.port), "conf"]
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory)
        for _ in range(10 * timeout):
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the proxy does not answer:\n{self.tail()}")

    def tail(self, n=3000):
        """The last `n` bytes of its messages."""
        if self.process is None:
            return "the proxy has not started"
        with open(os.path.join(self.directory, "log"), "rb") as f:
            f.seek(0, 2)
            f.seek(max(0, f.tell() - n))
            return f.read().decode("utf-8", "replace")

    def kill(self):
        """kill -9"""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=20):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
