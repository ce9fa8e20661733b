"""Applications in PHP from Debian's packages: they are unpacked and not installed, because many
depend on a web server that would start by itself. PHP's own web server serves them, and a browser
without scripts visits the pages."""

import html.parser
import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import common  # noqa: E402
import server  # noqa: E402

MODULES = {"mysqli": "php-mysql", "xml": "php-xml", "mbstring": "php-mbstring", "intl": "php-intl"}


def install(*modules):
    """Installs PHP's command line and these of its modules, if they are missing."""
    missing = [] if shutil.which("php") else ["php-cli"]
    for module in ("mysqli", "xml", "mbstring", *modules):
        probe = ["php", "-r", f"exit(extension_loaded('{module}') ? 0 : 1);"]
        if missing[:1] == ["php-cli"] or subprocess.run(probe, stdout=subprocess.DEVNULL).returncode:
            missing.append(MODULES[module])
    if missing:
        common.install(*missing)


def replace(path, *pairs):
    """Replaces texts in a file, which has them; `pairs` is old, new, old, new ..."""
    with open(path) as f:
        text = f.read()
    for old, new in zip(pairs[::2], pairs[1::2]):
        assert old in text, (path, old)
        text = text.replace(old, new)
    os.remove(path)  # a link to the unpacked file
    with open(path, "w") as f:
        f.write(text)


def copy(source, target):
    """Copies a directory of files that are not changed in place: by hard links where it can."""
    def link(one, other):
        try:
            os.link(one, other, follow_symlinks=False)
        except OSError:
            shutil.copy2(one, other, follow_symlinks=False)
    shutil.copytree(source, target, symlinks=True, copy_function=link)


class Site:
    """PHP's web server over `root`, and a browser without scripts.

    settings: of php.ini. router: a script that sees each request first."""

    def __init__(self, directory, root, settings=None, router=None):
        self.directory, self.root, self.router = directory, root, router
        self.settings = {"date.timezone": "UTC", "sendmail_path": "/bin/true", "display_errors": "0", "log_errors": "1",
                         "error_reporting": "E_ALL & ~E_DEPRECATED", "memory_limit": "512M", **(settings or {})}
        self.port = server.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def php(self, *arguments):
        """The command line that runs PHP with the settings."""
        return ["php", *(word for name, value in self.settings.items() for word in ("-d", f"{name}={value}")), *arguments]

    def run(self, *arguments, **more):
        """What a script writes; raises with its errors."""
        done = subprocess.run(self.php(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def __enter__(self):
        self.log_path = os.path.join(self.directory, "php.log")
        self.output = open(self.log_path, "wb")
        arguments = ["-S", f"127.0.0.1:{self.port}", "-t", self.root, *([self.router] if self.router else [])]
        self.process = subprocess.Popen(self.php(*arguments), stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
                                        env={**os.environ, "PHP_CLI_SERVER_WORKERS": "2"}, start_new_session=True)
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/robots.txt", timeout=10)
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

    def get(self, path, **fields):
        """The status and the text of a page."""
        if fields:
            path += ("&" if "?" in path else "?") + urllib.parse.urlencode(fields, doseq=True)
        return self._open(urllib.request.Request(self.url + path))

    def post(self, path, **fields):
        """The status and the text of the page that a form leads to."""
        data = urllib.parse.urlencode(fields, doseq=True).encode()
        return self._open(urllib.request.Request(self.url + path, data=data))

    def json(self, path, **fields):
        """The JSON answer to a form."""
        return json.loads(self.post(path, **fields)[1])

    def _open(self, request):
        try:
            with self.opener.open(request, timeout=300) as answer:
                return answer.status, answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode("utf-8", "replace")

    def complaints(self, words):
        """Lines of PHP's log that match the regular expression `words`."""
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return [line.strip() for line in f if re.search(words, line)]


class Forms(html.parser.HTMLParser):
    """The forms of a page: `forms` is a list of (attributes of the form, {name: value or list})."""

    def __init__(self, page):
        super().__init__()
        self.forms, self.select, self.option, self.area = [], None, None, None
        self.feed(page)

    def put(self, name, value):
        if self.forms and name:
            fields = self.forms[-1][1]
            if name.endswith("[]") or name in fields and isinstance(fields[name], list):
                fields.setdefault(name, []).append(value)
            else:
                fields[name] = value

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        name = given.get("name")
        if tag == "form":
            self.forms.append((given, {}))
        elif tag == "input":
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio"):
                if "checked" in given:
                    self.put(name, given.get("value") or "on")
            elif kind not in ("submit", "button", "image", "reset", "file"):
                self.put(name, given.get("value") or "")
        elif tag == "select":
            self.select, self.first, self.chosen = given, None, []
        elif tag == "option" and self.select is not None:
            value = given.get("value", "")
            self.first = value if self.first is None else self.first
            if "selected" in given:
                self.chosen.append(value)
        elif tag == "textarea":
            self.area = (name, "")

    def handle_endtag(self, tag):
        if tag == "select" and self.select is not None:
            many = "multiple" in self.select
            for value in self.chosen if many else (self.chosen or [self.first or ""])[-1:]:
                self.put(self.select.get("name"), value)
            self.select = None
        elif tag == "textarea" and self.area:
            self.put(*self.area)
            self.area = None

    def handle_data(self, data):
        if self.area:
            self.area = (self.area[0], self.area[1] + data)


def fields_of(page, *, id=None, action=None):
    """The fields of the form of the page with this id, or whose action has these words."""
    for given, fields in Forms(page).forms:
        if id is not None and given.get("id") == id or action is not None and action in given.get("action", ""):
            return fields
    raise LookupError(f"no form {id or action}: {[f[0] for f in Forms(page).forms]}")


def plain(text):
    """HTML without tags and superfluous spaces."""
    text = re.sub(r"(?s)<(script|style).*?</\1>", " ", text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()
