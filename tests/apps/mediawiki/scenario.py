"""What a wiki does in a day: pages are written, linked, searched, moved, deleted and restored,
users are blocked, and the maintenance scripts put everything in order.

`run` yields pairs (step, outcome); outcomes are plain JSON values and do not depend on the time or
on ports.
"""

import json
import os
import re

import php

ADMIN, PASSWORD = "Admin", "a long pass phrase"
TIME = re.compile(r"\b20\d\d-\d\d-\d\dT[\d:]+Z|\b20[2-9]\d[01]\d[0-3]\d[0-2]\d[0-5]\d[0-5]\d\b|\b1[789]\d{8}\b|\d\d:\d\d, \d+ \w+ 20\d\d(?: \(UTC\))?|\d+ \w+ 20\d\d(?:, at | )\d\d:\d\d")

PAGES = {
    "Zürich": "'''Zürich''' is a city in [[Switzerland]]. [[Category:Cities]] [[Category:Überall]]\n== History ==\nThe Romans called it Turicum.\n== Food ==\nZürcher Geschnetzeltes.",
    "Switzerland": "A country with [[Zürich]], [[Geneva]] and [[Bern]]. {{Box|country}} [[Category:Countries]]",
    "Geneva": "Genève lies on a lake. See [[Zürich]] and https://example.com/geneva [[Category:Cities]]",
    "Bern": "#REDIRECT [[Switzerland]]",
    "Template:Box": "<div>Box of {{{1|nothing}}} [[Category:Boxed]]</div>",
    "Category:Cities": "All cities. [[Category:Places]]",
    "Category:Countries": "All countries. [[Category:Places]]",
    "Москва": "Столица России. [[Category:Cities]] привет мир",
    "日本語": "日本語の記事です。検索できますか。 [[Category:Überall]]",
    "Emoji 😀": "An emoji 😀 in the title and the text. {{Box|smile}}",
    "Straße": "Die Straße nach [[Zürich]]; strasse. <ref>A note</ref> <references />",
    "Database": "A database server stores rows. Row locks, gap locks and next-key locks. InnoDB is an engine. {{#if: yes | Parser functions work | no}}",
    "Search engine": "A search engine reads an inverted index: words point to documents. Quotes ' and \" and \\ too, 100% of _underscores_.",
    "Full text": "Full text search finds words such as cafe, café, don't, it's, C++, 3.14 and foo-bar. Database database database.",
    "Sandbox": "Play here. [[Missing page]] [[Another missing page]] [[File:Notes.txt]]",
    "Talk:Zürich": "What about the Romans? ~~~",
    "User:Admin": "I am the administrator. [[:Category:Cities]]",
    "Lists": "* [[Geneva]]\n* [[Zürich]]\n{| class=\"wikitable\"\n! Head\n|-\n| Cell {{CURRENTYEAR}}\n|}\n{{:Geneva}}",
    "MediaWiki:Sitenotice": "A notice for all.",
    "İstanbul": "A city on two continents. [[Category:Cities]]",
}
SEARCHES = ["database", "zürich", "zurich", "ZÜRICH", "romans", "cafe", "café", "\"next-key locks\"", "data*", "database -engine", "search index", "москва", "привет", "日本語", "検索",
            "😀", "strasse", "straße", "C++", "3.14", "don't", "the", "it", "foo-bar", "country OR city", "nothing like this", "intitle:zürich", "%", "_", "\\", "istanbul",
            "incategory:Cities", "a", "in", "geneva lake", "+city -zürich"]


def without_times(value, url):
    """A JSON value without the times of the run and the address of the web server."""
    text = TIME.sub("TIME", json.dumps(value, ensure_ascii=False).replace(url, "URL"))
    return json.loads(re.sub(r'URL(?=[/"])', "URL", text))


class Wiki:
    """The programming interface, as one user."""

    def __init__(self, site):
        self.site, self.tokens = site, {}

    def call(self, action, **fields):
        _, text = self.site.post("/api.php", action=action, format="json", formatversion="2", errorformat="plaintext", **fields)
        try:
            return json.loads(text)
        except ValueError:
            return {"no JSON": php.plain(text)[:600]}

    def token(self, kind):
        if kind not in self.tokens:
            self.tokens[kind] = self.call("query", meta="tokens", type=kind)["query"]["tokens"][kind + "token"]
        return self.tokens[kind]

    def change(self, action, token="csrf", **fields):
        """What a change answers, without its times."""
        answer = self.call(action, token=self.token(token), **fields)
        return answer.get("errors") or answer.get(action, answer)

    def log_in(self, name, password):
        self.site.cookies.clear()
        self.tokens = {}
        answer = self.call("clientlogin", username=name, password=password, loginreturnurl=self.site.url + "/", logintoken=self.token("login"))
        self.tokens = {}
        return answer.get("clientlogin", answer).get("status", answer)

    def query(self, **fields):
        """A query with the list that it gives alone."""
        answer = self.call("query", **fields)
        return answer.get("errors") or answer.get("query", answer)


def jobs(site):
    site.run("maintenance/runJobs.php", cwd=site.root)


def written(wiki):
    yield "log in", wiki.log_in(ADMIN, PASSWORD)
    for title, text in PAGES.items():
        yield f"edit {title}", wiki.change("edit", title=title, text=text, summary=f"About {title} – 😀", createonly="1")
    yield "edit again", wiki.change("edit", title="Geneva", text="x", createonly="1")
    yield "section", wiki.change("edit", title="Zürich", section="1", text="== History ==\nThe Romans called it ''Turicum''.")
    yield "new section", wiki.change("edit", title="Zürich", section="new", sectiontitle="Lake", text="A lake.")
    yield "append", wiki.change("edit", title="Sandbox", appendtext="\nMore. " + "word " * 3000)
    yield "no change", wiki.change("edit", title="Geneva", appendtext="")
    yield "undo", wiki.change("edit", title="Zürich", undo=wiki.query(titles="Zürich", prop="revisions", rvprop="ids")["pages"][0]["revisions"][0]["revid"])
    yield "conflict", wiki.change("edit", title="Zürich", text="Old", basetimestamp="2001-01-01T00:00:00Z")
    jobs(wiki.site)


def managed(wiki):
    yield "move", wiki.change("move", **{"from": "Geneva", "to": "Genève", "movetalk": "1"}, reason="French")
    yield "move over a page", wiki.change("move", **{"from": "Zürich", "to": "Switzerland"})
    yield "protect", wiki.change("protect", title="Switzerland", protections="edit=sysop|move=sysop", expiry="infinite")
    yield "protect a title", wiki.change("protect", title="Never made", protections="create=sysop")
    yield "delete", wiki.change("delete", title="Sandbox", reason="Played enough")
    yield "deleted revisions", wiki.query(titles="Sandbox", prop="deletedrevisions", drvprop="ids|user|comment|size|sha1")
    yield "undelete", wiki.change("undelete", title="Sandbox", reason="Not enough")
    yield "create account", wiki.call("createaccount", username="Änne", password="another long phrase", retype="another long phrase", email="", createreturnurl=wiki.site.url + "/",
                                      createtoken=wiki.token("createaccount")).get("createaccount")
    yield "create it again", wiki.call("createaccount", username="Änne", password="another long phrase", retype="another long phrase", createreturnurl=wiki.site.url + "/",
                                       createtoken=wiki.token("createaccount")).get("createaccount")
    yield "rights", wiki.change("userrights", "userrights", user="Änne", add="bureaucrat|bot", reason="Trust")
    yield "watch", wiki.change("watch", "watch", titles="Zürich|Database|Москва")
    yield "watchlist", [page["title"] for page in wiki.query(list="watchlistraw", wrlimit="50") if isinstance(page, dict)]
    yield "upload", wiki_upload(wiki, "Notes.txt", b"notes \xf0\x9f\x98\x80\n" * 50)
    yield "upload again", wiki_upload(wiki, "Notes.txt", b"other notes\n")
    yield "other user", wiki.log_in("Änne", "another long phrase")
    yield "edit as other", wiki.change("edit", title="Database", appendtext="\nVandalism!")
    yield "edit protected", wiki.change("edit", title="Switzerland", appendtext="\nNo")
    yield "talk", wiki.change("edit", title="User talk:Admin", section="new", sectiontitle="Hello", text="How are you? ~~~")
    yield "options", wiki.change("options", change="gender=female|skin=monobook")
    yield "admin again", wiki.log_in(ADMIN, PASSWORD)
    yield "messages", wiki.query(meta="userinfo", uiprop="hasmsg|groups|editcount|options")["userinfo"]["editcount"]
    yield "rollback", wiki.change("rollback", "rollback", title="Database", user="Änne")
    yield "block", wiki.change("block", user="Änne", expiry="infinite", reason="Vandalism", nocreate="1", partial="1", pagerestrictions="Database|Zürich", namespacerestrictions="10")
    yield "block an address", wiki.change("block", user="192.0.2.0/24", expiry="infinite")
    yield "blocks", wiki.query(list="blocks", bkprop="id|user|by|reason|range|flags|restrictions")
    yield "unblock", wiki.change("unblock", user="192.0.2.0/24")
    yield "tag", wiki.change("managetags", operation="create", tag="étiquette", reason="A tag")
    yield "add tag", wiki.change("tag", revid="3|4|5", add="étiquette")
    yield "delete revision", wiki.change("revisiondelete", type="revision", target="Zürich", ids=str(wiki.query(titles="Zürich", prop="revisions", rvprop="ids", rvdir="newer", rvlimit="1")["pages"][0]["revisions"][0]["revid"]),
                                         hide="content|comment")
    yield "merge history", wiki.change("mergehistory", **{"from": "Lists", "to": "Never merged"})
    yield "patrol", wiki.change("patrol", "patrol", rcid="1")
    yield "change model", wiki.change("changecontentmodel", title="User:Admin", model="text", summary="Plain")
    yield "import", wiki.call("import", token=wiki.token("csrf"), interwikisource="none", interwikipage="x").get("errors")
    yield "filter", wiki.call("query", list="abusefilters", abfprop="id|description").get("query")
    jobs(wiki.site)


def wiki_upload(wiki, name, data):
    import urllib.request
    boundary = "a-boundary-of-the-test"
    fields = {"action": "upload", "format": "json", "formatversion": "2", "errorformat": "plaintext", "filename": name, "comment": "A file", "text": "About the file", "ignorewarnings": "1", "token": wiki.token("csrf")}
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode() for key, value in fields.items()]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'.encode() + data + b"\r\n")
    body = b"".join(parts) + f"--{boundary}--\r\n".encode()
    request = urllib.request.Request(wiki.site.url + "/api.php", data=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    answer = json.loads(wiki.site._open(request)[1])
    return answer.get("errors") or {key: value for key, value in answer["upload"].items() if key in ("result", "filename", "warnings")}


def searched(wiki, when):
    for words in SEARCHES:
        for what in ("text", "title"):
            found = wiki.query(list="search", srsearch=words, srwhat=what, srlimit="50", srnamespace="*", srprop="size|wordcount", srinfo="totalhits")
            hits = [[hit["title"], hit["size"], hit["wordcount"]] for hit in found.get("search", [])] if isinstance(found, dict) else found
            yield f"search {when} {what} {words}", [sorted(hits, key=str) if isinstance(hits, list) else hits, found.get("searchinfo") if isinstance(found, dict) else None]
    for prefix in ("Z", "zü", "М", "e", "data", "user:", "日", "%", "_", "i"):
        yield f"opensearch {when} {prefix}", wiki.call("opensearch", search=prefix, namespace="0|2|14", limit="20")[1]


def read(wiki):
    lists = {
        "allpages": {"aplimit": "100"}, "allpages from": {"apfrom": "Z", "aplimit": "100"}, "allpages prefix": {"apprefix": "S", "apfilterredir": "nonredirects"},
        "allcategories": {"acprop": "size", "aclimit": "50"}, "alllinks": {"alunique": "1", "allimit": "100"}, "allredirects": {"arlimit": "10"}, "allusers": {"auprop": "groups|editcount"},
        "alltransclusions": {"atlimit": "10"}, "allimages": {"aiprop": "size|mime|sha1"}, "allfileusages": {}, "alldeletedrevisions": {"adrprop": "ids|user|size", "adrlimit": "50"},
        "allrevisions": {"arvprop": "ids|user|size|tags", "arvlimit": "100"}, "backlinks": {"bltitle": "Zürich", "blredirect": "1", "bllimit": "50"},
        "embeddedin": {"eititle": "Template:Box"}, "imageusage": {"iutitle": "File:Notes.txt"}, "categorymembers": {"cmtitle": "Category:Cities", "cmprop": "ids|title|sortkeyprefix|type"},
        "exturlusage": {"euquery": "example.com", "euprop": "ids|title|url"}, "logevents": {"leprop": "ids|title|type|user|comment", "lelimit": "100"},
        "logevents of a type": {"letype": "delete", "leprop": "ids|title|type|user|comment"},
        "recentchanges": {"rcprop": "title|ids|sizes|flags|user|comment|tags", "rclimit": "100"}, "recentchanges of a tag": {"rctag": "étiquette", "rcprop": "title|ids"},
        "recentchanges of types": {"rctype": "new|log", "rcshow": "!bot", "rcprop": "title|ids", "rclimit": "50"}, "usercontribs": {"ucuser": "Admin", "ucprop": "ids|title|size|sizediff", "uclimit": "100"},
        "usercontribs of a prefix": {"ucuserprefix": "Ä", "ucprop": "ids|title"}, "watchlist": {"wlprop": "title|ids|user", "wlallrev": "1", "wllimit": "50"}, "tags": {"tgprop": "displayname|hitcount|source"},
        "protectedtitles": {"ptprop": "user|comment|level"}, "pageswithprop": {"pwppropname": "notoc"}, "prefixsearch": {"pssearch": "Zu"}, "users": {"ususers": "Admin|Änne|None", "usprop": "groups|editcount|blockinfo"},
        "iwbacklinks": {"iwblprefix": "wikipedia"}, "random": {"rnnamespace": "0", "rnlimit": "2"}, "mystashedfiles": {}, "filearchive": {"faprop": "sha1|size"},
    }
    for name, fields in lists.items():
        found = wiki.query(list=name.split()[0], **fields)
        if name == "random":
            found = len(found["random"]) if isinstance(found, dict) else found
        yield f"list {name}", found
    for page in ("Ancientpages", "BrokenRedirects", "Deadendpages", "DoubleRedirects", "ListDuplicatedFiles", "Listredirects", "Lonelypages", "Longpages", "MediaStatistics", "MostInterwikis", "Mostcategories",
                 "Mostimages", "Mostlinked", "Mostlinkedcategories", "Mostlinkedtemplates", "Mostrevisions", "Fewestrevisions", "Shortpages", "Uncategorizedcategories", "Uncategorizedpages",
                 "Uncategorizedimages", "Uncategorizedtemplates", "Unusedcategories", "Unusedimages", "Unusedtemplates", "Unwatchedpages", "Wantedcategories", "Wantedfiles", "Wantedpages", "Wantedtemplates",
                 "Withoutinterwiki"):
        found = wiki.query(list="querypage", qppage=page, qplimit="50")
        results = found.get("querypage", {}).get("results") if isinstance(found, dict) else found
        if page == "Ancientpages":  # by time
            results = [result["title"] for result in results]
        yield f"query page {page}", sorted(results or [], key=str)
    titles = "Zürich|Switzerland|Genève|Database|File:Notes.txt|Category:Cities|Lists"
    for prop in ("info", "categories", "categoryinfo", "contributors", "extlinks", "fileusage", "imageinfo", "images", "langlinks", "links", "linkshere", "pageprops", "redirects", "templates", "transcludedin"):
        found = wiki.query(titles=titles, prop=prop, **({"inprop": "protection|displaytitle|watchers"} if prop == "info" else {}))
        yield f"prop {prop}", found.get("pages") if isinstance(found, dict) else found
    yield "revisions", wiki.query(titles="Zürich", prop="revisions", rvprop="ids|user|size|sha1|comment|tags", rvlimit="50")
    yield "site statistics", wiki.query(meta="siteinfo", siprop="statistics|interwikimap|namespaces")["statistics"]
    yield "compare", php.plain(str(wiki.call("compare", fromrev="2", torev="4").get("compare", {}).get("body")))
    yield "parse", wiki.call("parse", page="Lists", prop="links|templates|categories|sections").get("parse")
    yield "generator", sorted(page["title"] for page in wiki.query(generator="links", titles="Switzerland", prop="info", gpllimit="50").get("pages", []))
    yield "opensearch again", wiki.call("opensearch", search="Zü")[1]


def visited(wiki):
    site = wiki.site
    for title in ("Zürich", "Bern", "Special:RecentChanges", "Special:AllPages", "Special:Categories", "Special:Statistics", "Special:ListUsers", "Special:Log", "Special:WhatLinksHere/Zürich", "Special:Watchlist",
                  "Special:Contributions/Admin", "Special:ListFiles", "Special:BlockList", "Special:Version", "Special:SpecialPages", "Special:Export", "Special:PrefixIndex/S", "Special:RecentChangesLinked/Zürich",
                  "Special:ProtectedPages", "Special:ActiveUsers", "Special:NewPages", "Special:Tags", "Special:AbuseFilter", "Special:Interwiki", "Special:ReplaceText", "Special:Nuke", "Special:Undelete",
                  "Special:Search", "Special:UserRights/Änne", "Special:LinkSearch", "Special:FileDuplicateSearch", "Special:MIMESearch", "Special:TrackingCategories", "Special:AllMessages", "Special:Preferences",
                  "Special:Block", "Special:ComparePages", "Special:PagesWithProp", "Special:EditWatchlist", "Special:PageData", "Special:AutoblockList", "Special:BotPasswords", "Category:Cities", "File:Notes.txt"):
        status, page = site.get("/index.php", title=title)
        errors = [php.plain(e) for e in re.findall(r'(?s)<div class="[^"]*(?:errorbox|mw-message-box-error)[^"]*">.*?</div>', page)]
        yield f"page {title}", [status, errors, "Database error" in page or "DBQueryError" in page]
    for fields in ({"title": "Zürich", "action": "history"}, {"title": "Zürich", "action": "edit"}, {"title": "Zürich", "action": "info"}, {"title": "Zürich", "diff": "prev"}, {"title": "Zürich", "action": "raw"},
                   {"title": "Special:Search", "search": "database", "fulltext": "1", "ns0": "1"}, {"title": "Special:RecentChanges", "feed": "atom"}):
        status, page = site.get("/index.php", **fields)
        yield f"page {sorted(fields.items())}", [status, "Database error" in page or "DBQueryError" in page]
    status, page = site.get("/index.php", title="Special:Search", search="database", fulltext="1")
    yield "page of hits", sorted(php.plain(hit) for hit in re.findall(r'(?s)<div class="mw-search-result-heading">.*?</div>', page))
    status, page = site.get("/index.php", title="Special:Export/Zürich")
    yield "export", [status, len(re.findall("<revision>", page))]
    for path in ("/rest.php/v1/page/Database", "/rest.php/v1/search/page?q=database&limit=5", "/rest.php/v1/search/title?q=Z&limit=5", "/rest.php/v1/page/Z%C3%BCrich/history"):
        status, text = site.get(path)
        found = json.loads(text)
        yield f"rest {path}", [status, sorted(p["title"] for p in found["pages"]) if "pages" in found else sorted(found)]
    # A filter of AbuseFilter, made on its page.
    status, page = site.get("/index.php", title="Special:AbuseFilter/new")
    fields = {"wpFilterDescription": "No shouting", "wpFilterRules": "added_lines rlike 'SHOUT'", "wpFilterEnabled": "1", "wpFilterActionDisallow": "1", "wpFilterDisallowMessage": "abusefilter-disallowed",
              "wpFilterNotes": "", "wpEditToken": php.fields_of(page, id="mw-abusefilter-editing-form").get("wpEditToken")}
    yield "new filter", site.post("/index.php?title=Special:AbuseFilter/new", **fields)[0]
    yield "filtered edit", wiki.change("edit", title="Database", appendtext="\nSHOUT")
    yield "filter log", wiki.query(list="abuselog", aflprop="ids|user|title|action|result|filter")
    # Replace Text changes pages by jobs.
    status, page = site.get("/index.php", title="Special:ReplaceText")
    yield "replace text", status


def maintained(wiki):
    site = wiki.site
    dump = os.path.join(site.directory, "dump.xml")

    def script(name, *arguments):
        try:
            out = site.run(f"maintenance/{name}", *arguments, cwd=site.root)
        except RuntimeError as e:
            out = "FAILED " + str(e)
        out = re.sub(r"[\d.]+ ?(s|seconds|ms|pages/sec|revs/sec|/sec)\b|\d+\.\d+|0x[0-9a-f]+", "N", TIME.sub("TIME", out)).replace(site.root, "ROOT").replace(site.url, "URL")
        return sorted(set(re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d.*", "TIME", line).strip() for line in out.splitlines()))

    for name, *arguments in (["rebuildtextindex.php"], ["rebuildrecentchanges.php"], ["refreshLinks.php"], ["initSiteStats.php", "--update"], ["updateSpecialPages.php"], ["showSiteStats.php"],
                             ["namespaceDupes.php", "--fix"], ["cleanupTitles.php"], ["recountCategories.php", "--mode=pages"], ["initEditCount.php"], ["deleteOldRevisions.php"],
                             ["findOrphanedFiles.php"], ["createAndPromote.php", "--force", "--sysop", "Third user", "a third long phrase"],
                             ["deleteAutoPatrolLogs.php", "--check-old", "--before=20200101000000"], ["cleanupWatchlist.php", "--fix"], ["rebuildImages.php"], ["updateCollation.php", "--force"],
                             ["populateContentTables.php"], ["attachLatest.php", "--fix"], ["cleanupUsersWithNoId.php", "--prefix=x"], ["removeUnusedAccounts.php"], ["updateArticleCount.php", "--update"],
                             ["deleteDefaultMessages.php"], ["getText.php", "Database"], ["update.php", "--quick"]):
        yield f"script {name}", script(name, *arguments) if name not in ("update.php", "rebuildtextindex.php") else bool(script(name, *arguments))
    site.run("maintenance/dumpBackup.php", "--full", "--quiet", f"--output=file:{dump}", cwd=site.root)
    with open(dump) as f:
        yield "dump", len(re.findall("<revision>", f.read()))
    yield "import of a dump", bool(script("importDump.php", "--no-updates", "--username-prefix=imp", dump))
    yield "links again", script("rebuildall.php") != []
    jobs(site)


def run(site):
    wiki = Wiki(site)

    def parts():
        yield from written(wiki)
        yield from searched(wiki, "first")
        yield from managed(wiki)
        yield from read(wiki)
        yield from visited(wiki)
        yield from maintained(wiki)
        yield from searched(wiki, "last")

    for step, outcome in parts():
        yield step, without_times(outcome, site.url)
