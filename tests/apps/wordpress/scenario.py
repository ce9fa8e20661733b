"""What a site does in a day: it is installed, filled, read, searched, commented on and tidied up.

`run` yields pairs (step, outcome); outcomes are plain JSON values and do not depend on the time or
on ports.
"""

import datetime
import html
import json
import re
import unicodedata
import urllib.parse
import xmlrpc.client

ADMIN, PASSWORD = "editor", "a long pass phrase"

TITLES = [
    "Café in Zürich", "The cafe around the corner", "Straße und Strasse", "Naïve façade", "Smørrebrød", "Ωmega and omega", "Привет, мир",
    "привет from Moscow", "日本語の記事", "Emoji 😀 in a title", "Quotes ' and \" and \\ in a title", "100% of _underscores_", "CAFÉ IN CAPITALS",
    "Æsop's fables", "Aesop again", "Ñandú", "nandu", "Łódź", "lodz", "İstanbul", "istanbul", "Ἀθῆναι", "αθηναι", "Résumé", "resume",
]
SEARCHES = ["cafe", "CAFÉ", "strasse", "naive", "smorrebrod", "ω", "ПРИВЕТ", "日本", "😀", "%", "_", "\\", "'", "aesop", "ñandu", "lodz", "istanbul",
            "αθηναι", "resume", "body 1", "corner -around", "nothing like this"]


def day(n):
    return datetime.datetime(2024, 1, 1, 12, 0, 0) + datetime.timedelta(days=n)


def titles_of(feed):
    """Titles of the entries of an RSS feed, in their order."""
    return [html.unescape(t) for t in re.findall(r"<item>\s*<title>(.*?)</title>", feed, re.S)]


def headings_of(page):
    """Titles of the posts on a page of the default theme, in their order."""
    found = re.findall(r"<h[12][^>]*wp-block-post-title[^>]*>(.*?)</h[12]>", page, re.S)
    return [html.unescape(re.sub(r"<[^>]+>", "", t)).strip() for t in found]


def base_letters(titles):
    """Titles without case and accents: titles that are equal to the database may come in any order.
    """
    plain = (unicodedata.normalize("NFKD", t.replace("ł", "l").replace("Ł", "L")).casefold() for t in titles)
    return ["".join(c for c in t if not unicodedata.combining(c)) for t in plain]


def installed(site):
    status, page = site.get("/wp-admin/install.php")
    yield "installer", [status, "Welcome" in page]
    status, page = site.post("/wp-admin/install.php?step=2", weblog_title="A site for tests", user_name=ADMIN, admin_password=PASSWORD,
                             admin_password2=PASSWORD, pw_weak="1", admin_email="editor@example.com", blog_public="1", Submit="Install WordPress", language="")
    yield "install", [status, "Success!" in page]
    status, page = site.post("/wp-login.php", log=ADMIN, pwd=PASSWORD, testcookie="1")
    status, page = site.get("/wp-admin/")
    yield "log in", [status, "wp-admin-bar" in page]
    # The installer leaves out the addresses of categories and tags; this page makes them.
    yield "permalinks", site.get("/wp-admin/options-permalink.php")[0]


def written(site):
    call = site.rpc.wp
    categories = [call.newTerm(1, ADMIN, PASSWORD, {"name": name, "taxonomy": "category", "description": f"About {name}"})
                  for name in ("Travel", "Food & drink", "Bücher")]
    yield "categories", categories
    posts = []
    for n, title in enumerate(TITLES):
        tags = [f"tag {n % 4}", "Überall", "même"][: 1 + n % 3]
        posts.append(call.newPost(1, ADMIN, PASSWORD, {
            "post_type": "post", "post_status": "publish", "post_title": title, "post_date": day(n), "post_content": f"The body {n} of “{title}”.<!--more-->Rest 😀.",
            "post_excerpt": f"Excerpt {n}", "comment_status": "open", "terms": {"category": [int(categories[n % 3])]}, "terms_names": {"post_tag": tags},
            "custom_fields": [{"key": "rank", "value": str(n * 7 % 11)}, {"key": "größe", "value": "ß" * n}]}))
    yield "posts", posts
    site.posts = [int(post) for post in posts]
    page = call.newPost(1, ADMIN, PASSWORD, {"post_type": "page", "post_status": "publish", "post_title": "About us", "post_content": "Us.", "post_date": day(1)})
    yield "page", page
    yield "draft", call.newPost(1, ADMIN, PASSWORD, {"post_status": "draft", "post_title": "A café draft", "post_date": day(40)})
    yield "edit", call.editPost(1, ADMIN, PASSWORD, posts[3], {"post_title": "Naïve façade, revised", "post_content": "A new body."})
    yield "edit again", call.editPost(1, ADMIN, PASSWORD, posts[3], {"post_content": "A newer body."})
    yield "revisions", len(call.getRevisions(1, ADMIN, PASSWORD, posts[3], ["post_title"]))
    yield "trash", call.deletePost(1, ADMIN, PASSWORD, posts[5])
    yield "delete", call.deletePost(1, ADMIN, PASSWORD, posts[5])
    yield "duplicate term", _fault(lambda: call.newTerm(1, ADMIN, PASSWORD, {"name": "bucher", "taxonomy": "category"}))
    yield "upload", call.uploadFile(1, ADMIN, PASSWORD, {"name": "notes.txt", "type": "text/plain", "bits": b"notes \xf0\x9f\x98\x80", "overwrite": False})["file"]


def _fault(call):
    try:
        return call()
    except xmlrpc.client.Fault as e:
        return [e.faultCode, e.faultString]


def commented(site):
    call = site.rpc.wp
    commented_posts = [site.posts[7], site.posts[9], site.posts[10]]
    ids = []
    for n in range(12):
        ids.append(call.newComment(1, ADMIN, PASSWORD, commented_posts[n % 3], {"content": f"Comment {n}: très bien 😀 {'x' * (n * 50)}",
                                                                         "comment_parent": ids[-3] if n % 4 == 3 else 0}))
    yield "comments", ids
    site.opener.addheaders = [("User-Agent", "test")]
    status, page = site.post("/wp-comments-post.php", comment="From the form", comment_post_ID="1", comment_parent="0")
    yield "comment form", status
    yield "comment again", _status_and(site.post("/wp-comments-post.php", comment="From the form", comment_post_ID="1", comment_parent="0"), "Duplicate comment")
    yield "hold", call.editComment(1, ADMIN, PASSWORD, ids[2], {"status": "hold"})
    yield "spam", call.editComment(1, ADMIN, PASSWORD, ids[4], {"status": "spam"})
    yield "delete comment", call.deleteComment(1, ADMIN, PASSWORD, ids[5])
    for status in ("", "approve", "hold", "spam", "trash"):
        found = call.getComments(1, ADMIN, PASSWORD, {"status": status, "number": 50})
        # Comments of the same second have no order.
        yield f"comments {status or 'all'}", sorted(int(c["comment_id"]) for c in found)
    yield "counts", call.getCommentCount(1, ADMIN, PASSWORD, commented_posts[0])
    yield "comment feed", sorted(title.strip() for title in titles_of(site.get("/?feed=comments-rss2")[1]))


def _status_and(answer, words):
    return [answer[0], words in answer[1]]


def read(site):
    for word in SEARCHES:
        quoted = urllib.parse.quote(word)
        status, feed = site.get(f"/?s={quoted}&feed=rss2")
        yield f"search {word}", [status, titles_of(feed)]
    status, page = site.get("/?s=cafe")
    yield "search page", [status, headings_of(page)]
    for path in ("/", "/?paged=2", "/?paged=3", "/?cat=3", "/?tag=uberall", "/?tag=tag-1", "/?m=202401", "/?m=20240105", "/?author=1", f"/?p={site.posts[7]}", "/?page_id=2",
                 "/?orderby=meta_value_num&meta_key=rank", "/?p=99999"):
        status, page = site.get(path)
        yield f"page {path}", [status, headings_of(page)]
    status, page = site.get("/?orderby=rand")
    yield "page in random order", [status, len(headings_of(page))]
    status, page = site.get("/?order=asc&orderby=title")
    yield "page by title", [status, base_letters(headings_of(page))]
    for path in ("/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml", "/wp-sitemap-taxonomies-post_tag-1.xml"):
        status, page = site.get(path)
        yield f"page {path}", [status, len(re.findall("<loc>", page))]
    for route in ("posts&search=cafe", "posts&categories_exclude=3&tags=5&orderby=id", "tags&hide_empty=1",
                  "categories&search=BUCHER", f"comments&post={site.posts[7]}", "pages", "search&search=caf", "users", "posts&slug=nandu", "taxonomies"):
        status, text = site.get(f"/?rest_route=/wp/v2/{route}")
        yield f"rest {route}", [status, _names(json.loads(text))]


def _names(answer):
    if isinstance(answer, dict):
        return sorted(answer)
    return [item["title"] if isinstance(item.get("title"), str) else item.get("title", {}).get("rendered") or item.get("name") or item.get("id") for item in answer]


def administered(site):
    call = site.rpc.wp
    for path in ("edit.php", "edit.php?s=cafe", "edit.php?post_status=draft", "edit-tags.php?taxonomy=post_tag", "edit-comments.php",
                 "edit-comments.php?comment_status=spam", "upload.php?mode=list", "users.php?orderby=email", "options-general.php", "themes.php", "plugins.php", "tools.php",
                 "site-health.php?tab=debug", "export.php", "index.php"):
        status, page = site.get("/wp-admin/" + path)
        rows = re.findall(r"<a class=[\"']row-title[\"'][^>]*>(.*?)</a>", page, re.S)
        yield f"admin {path}", [status, [html.unescape(re.sub("<[^>]+>", "", r)).strip() for r in rows]]
    status, page = site.form("/wp-admin/user-new.php", action="createuser", user_login="author", email="author@example.com", first_name="Änne", last_name="O'Hara",
                             pass1=PASSWORD, pass2=PASSWORD, pw_weak="on", role="author", createuser="Add New User")
    yield "new user", [status, "author@example.com" in page]
    yield "users", [[u["username"], u["roles"], u["first_name"]] for u in call.getUsers(1, ADMIN, PASSWORD, {"orderby": "login"})]
    yield "options", call.setOptions(1, ADMIN, PASSWORD, {"blog_title": "A site 😀 renamed", "posts_per_page": "7"})
    for query in ({"search": "tag"}, {"hide_empty": True}, {"orderby": "count", "order": "DESC", "number": 3}):
        terms = call.getTerms(1, ADMIN, PASSWORD, "post_tag", query)
        names = [t["count"] for t in terms] if "number" in query else [[t["name"], t["count"]] for t in terms]
        yield f"terms {sorted(query)}", names
    yield "rename tag", call.editTerm(1, ADMIN, PASSWORD, 5, {"taxonomy": "post_tag", "name": "tag zéro"})
    yield "delete category", call.deleteTerm(1, ADMIN, PASSWORD, "category", 3)
    posts = call.getPosts(1, ADMIN, PASSWORD, {"number": 50, "orderby": "title", "order": "ASC"}, ["post_title"])
    yield "posts by title", base_letters(p["post_title"] for p in posts)
    status, page = site.get("/wp-admin/export.php?download=true&content=all")
    yield "export", [status, len(re.findall("<item>", page)), len(re.findall("<wp:comment>", page))]


def run(site):
    for part in (installed, written, commented, read, administered):
        yield from part(site)
