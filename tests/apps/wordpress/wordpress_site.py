"""One WordPress site under PHP's web server, and a browser without scripts that visits it."""

import http.cookiejar
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import xmlrpc.client

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import server  # noqa: E402

CONFIG = """<?php
define('DB_NAME', '{database}');
define('DB_USER', '{user}');
define('DB_PASSWORD', '{password}');
define('DB_HOST', '127.0.0.1:{port}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
{keys}
$table_prefix = 'wp_';
// Errors of the database appear in the log. No request leaves the machine, and no job runs beside a test.
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_DEBUG_LOG', '{log}');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
if (!defined('ABSPATH')) {{ define('ABSPATH', __DIR__ . '/'); }}
require_once ABSPATH . 'wp-settings.php';
"""
# Sends every path that is no file to WordPress, as a web server's rewrite rules do.
ROUTER = """<?php
$path = $_SERVER['DOCUMENT_ROOT'] . parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if (is_file($path) || is_file(rtrim($path, '/') . '/index.php')) { return false; }
$_SERVER['SCRIPT_NAME'] = '/index.php';
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
"""
KEYS = (
    *("AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY"),
    *("AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT"),
)


class Site:
    """A copy of WordPress in a temporary directory, served over `database` of one server."""

    def __init__(self, source, port, user, password, database):
        self.directory = tempfile.mkdtemp(prefix="nfold-wordpress-")
        self.root = os.path.join(self.directory, "site")
        self.debug_log = os.path.join(self.directory, "debug.log")
        shutil.copytree(source, self.root)
        keys = "\n".join(f"define('{name}', 'a fixed key for {name}');" for name in KEYS)
        with open(os.path.join(self.root, "wp-config.php"), "w") as f:
            f.write(CONFIG.format(database=database, user=user, password=password, port=port, keys=keys, log=self.debug_log))
        self.router = os.path.join(self.directory, "router.php")
        with open(self.router, "w") as f:
            f.write(ROUTER)
        self.web_port = server.free_port()
        self.url = f"http://127.0.0.1:{self.web_port}"
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.rpc = xmlrpc.client.ServerProxy(self.url + "/xmlrpc.php", allow_none=True, use_builtin_types=True)

    def __enter__(self):
        self.output = open(os.path.join(self.directory, "php.log"), "wb")
        self.process = subprocess.Popen(
            ["php", "-d", "sendmail_path=/bin/true", "-d", "date.timezone=UTC", "-S", f"127.0.0.1:{self.web_port}", "-t", self.root, self.router],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, env={**os.environ, "PHP_CLI_SERVER_WORKERS": "2"},
            start_new_session=True)
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/license.txt", timeout=10)
                return self
            except urllib.error.HTTPError:
                return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("PHP's web server does not answer")

    def __exit__(self, kind, value, trace):
        # The workers are children in the process group of their own.
        os.killpg(self.process.pid, 15)
        self.process.wait(10)
        self.output.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def get(self, path):
        """The status and the text of a page."""
        return self._open(urllib.request.Request(self.url + path))

    def post(self, path, **fields):
        """The status and the text of the page that a form leads to."""
        data = urllib.parse.urlencode(fields, doseq=True).encode()
        return self._open(urllib.request.Request(self.url + path, data=data))

    def _open(self, request):
        try:
            with self.opener.open(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def form(self, path, **changes):
        """Sends the main form of an admin page with its hidden fields, and `changes` on top."""
        status, page = self.get(path)
        assert status == 200, (path, status)
        hidden = re.findall(r"<input[^>]*type=[\"']hidden[\"'][^>]*>", page)
        fields = {}
        for tag in hidden:
            name, value = re.search(r"name=[\"']([^\"']+)", tag), re.search(r"value=[\"']([^\"']*)", tag)
            if name:
                fields.setdefault(name.group(1), value.group(1) if value else "")
        fields.update(changes)
        return self.post(path, **fields)

    def database_errors(self):
        """What WordPress has logged about statements that failed."""
        if not os.path.exists(self.debug_log):
            return []
        with open(self.debug_log, encoding="utf-8", errors="replace") as f:
            return [line.strip() for line in f if "database error" in line or "PHP Fatal" in line]
