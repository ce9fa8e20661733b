"""Migrates the database, works with the models and with the admin's pages, migrates back and forth.
Prints the outcomes as JSON."""

import datetime
import decimal
import io
import json
import os
import re
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
import django  # noqa: E402

django.setup()
from django.contrib.auth.models import Group, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, ExtractYear, Rank, RowNumber, TruncMonth, Upper  # noqa: E402
from django.test import Client  # noqa: E402
from library.models import Author, Book, Copy, Borrowing, Tag  # noqa: E402

UTC = datetime.timezone.utc
found = {}


def command(*words):
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=out, no_color=True)
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def refused(work):
    """The error's number and text, or None."""
    try:
        with transaction.atomic():
            work()
    except (IntegrityError, django.db.Error, models.ProtectedError) as e:
        return [type(e).__name__, str(e)]


def migrated():
    yield "migrate", command("migrate")
    yield "nothing left to migrate", command("makemigrations", "--check", "--dry-run", "-v", "1")
    yield "check", command("check", "--database", "default")
    yield "inspectdb", [line for line in command("inspectdb", "library_book", "library_borrowing", "library_author") if "#" not in line]


def filled():
    names = ["Ursula", "Ñandú", "ursula k.", "Émile", "İlhan", "老舍", "O'Brian", "Łem"]
    authors = [Author.objects.create(name=name, born=datetime.date(1900 + 7 * n, n + 1, 2 * n + 1),
                                     profile={"languages": ["en", "fr"][:n % 3], "prizes": n, "home": {"city": f"city {n % 3}", "open": n % 2 == 0}},
                                     mentor_id=None) for n, name in enumerate(names)]
    for n, author in enumerate(authors[1:]):
        author.mentor = authors[n // 2]
    Author.objects.bulk_update(authors, ["mentor"])
    tags = Tag.objects.bulk_create([Tag(word=f"tag-{n}") for n in range(6)])
    tags = list(Tag.objects.order_by("word"))
    Book.objects.bulk_create([Book(title=f"Book {n:02} {'of größe' if n % 4 == 0 else 'on trees'}", author=authors[n % 7], pages=10 + 37 * n % 500,
                                   price=decimal.Decimal(n) * decimal.Decimal("1.35"), added=datetime.datetime(2024, 1 + n % 12, 3, 4, 5, 6, 789 * n, UTC),
                                   facts=None if n % 5 == 0 else {"rating": n % 7 / 2, "shelf": f"s{n % 3}", "tags": [n % 2, n % 3]}) for n in range(40)])
    for n, book in enumerate(Book.objects.order_by("title")):
        book.tags.set([tags[n % 6], tags[n * 5 % 6]])
        copy = Copy.objects.create(book=book, barcode=uuid.UUID(int=n * 7919), bought=datetime.timedelta(days=n, microseconds=n))
        if n % 3 == 0:
            Borrowing.objects.create(copy=copy, reader=f"reader {n % 4}", since=datetime.datetime(2024, 5, 6, n % 24, tzinfo=UTC), fine=n / 8, scan=bytes([n, 0, 255]))
    yield "counts", [m.objects.count() for m in (Author, Tag, Book, Copy, Borrowing)]
    yield "generated column", sorted(set(Book.objects.values_list("title_length", flat=True)))
    book, made = Book.objects.update_or_create(title="Book 03 on trees", defaults={"pages": 77})
    yield "update_or_create", [book.title_length, made]
    yield "get_or_create", Tag.objects.get_or_create(word="tag-3")[1]
    Tag.objects.bulk_create([Tag(word="tag-1"), Tag(word="tag-new")], ignore_conflicts=True)
    yield "ignore_conflicts", list(Tag.objects.order_by("word").values_list("word", flat=True))
    Author.objects.bulk_create([Author(id=authors[0].id, name="Ursula Le Guin", born=datetime.date(1929, 10, 21))], update_conflicts=True,
                               update_fields=["name", "born"])
    yield "update_conflicts", list(Author.objects.filter(id=authors[0].id).values_list("name", "born"))


def refusals():
    a = Author.objects.order_by("id").first()
    yield "no pages", refused(lambda: Book.objects.create(title="none", author=a, pages=0, price=1))
    yield "price", refused(lambda: Book.objects.filter(title__startswith="Book 1").update(price=F("price") - 1000))
    yield "unknown author", refused(lambda: Book.objects.create(title="none", author_id=4711, pages=1, price=1))
    yield "same name and birthday", refused(lambda: Author.objects.create(name=a.name.upper(), born=a.born))
    yield "protected", refused(lambda: Book.objects.first().delete())
    yield "restricted by the database", refused(lambda: Author.objects.filter(id=a.id)._raw_delete("default"))
    yield "same tag", refused(lambda: Tag.objects.create(word="tag-2"))
    yield "too long", refused(lambda: Tag.objects.create(word="x" * 51))
    yield "nothing changed", [Book.objects.count(), Author.objects.count()]


def queried():
    books = Book.objects
    yield "join and order", list(books.filter(author__mentor__name__startswith="U").order_by("-price", "title").values_list("title", "author__name"))
    yield "search", [list(Author.objects.filter(name__icontains=word).order_by("id").values_list("name", flat=True)) for word in ("URS", "ñan", "e", "老", "'")]
    yield "regular expression", list(books.filter(title__iregex=r"^BOOK [01][0-3] (of|on)").values_list("title", flat=True))
    yield "in of a subquery", list(books.filter(author__in=Author.objects.filter(born__year__gte=1920)).values_list("title", flat=True)[:9])
    yield "exists", list(Author.objects.annotate(long=Exists(books.filter(author=OuterRef("pk"), pages__gt=400))).order_by("id").values_list("name", "long"))
    newest = books.filter(author=OuterRef("pk")).order_by("-added")
    yield "subquery", list(Author.objects.annotate(newest=Subquery(newest.values("title")[:1])).order_by("id").values_list("name", "newest"))
    yield "aggregates", {k: str(v) for k, v in books.aggregate(Sum("pages"), Avg("price"), Max("added"), n=Count("id", filter=Q(pages__lt=100))).items()}
    yield "groups", list(Author.objects.annotate(n=Count("books"), p=Sum("books__pages")).filter(n__gt=4).order_by("-p").values_list("name", "n", "p"))
    yield "having of two joins", list(Tag.objects.annotate(n=Count("book", distinct=True), a=Count("book__author", distinct=True)).order_by("word").values_list("word", "n", "a"))
    rank = Window(Rank(), partition_by=F("author"), order_by=F("pages").desc())
    yield "window", list(books.annotate(r=rank, n=Window(RowNumber(), order_by=F("title").asc())).filter(r__lte=2).order_by("author", "r", "title").values_list("author__name", "r", "n", "title"))
    yield "months", [[str(m), n] for m, n in books.annotate(m=TruncMonth("added")).values("m").annotate(n=Count("id")).order_by("m").values_list("m", "n")]
    yield "dates", [str(d) for d in books.datetimes("added", "month", order="DESC")]
    yield "years", list(Author.objects.annotate(y=ExtractYear("born")).values_list("y", flat=True).order_by("y"))
    yield "expressions", list(books.annotate(t=Concat(Upper("title"), Value(" / "), "author__name"), c=Coalesce("facts__shelf", Value("none"), output_field=models.JSONField())).order_by("id").values_list("t", flat=True)[:5])
    yield "union", list(books.filter(pages__lt=50).values_list("title").union(Tag.objects.values_list("word")).order_by("title"))
    yield "intersection and difference", [list(books.filter(pages__lt=300).values_list("id").intersection(books.filter(pages__gt=200).values_list("id")).order_by("id")),
                                         list(books.filter(pages__lt=300).values_list("id").difference(books.filter(pages__lt=200).values_list("id")).order_by("id"))]
    yield "prefetch", [[a.name, [b.title for b in a.books.all()], [len(b.tags.all()) for b in a.books.all()]]
                       for a in Author.objects.prefetch_related(Prefetch("books", books.order_by("-pages")), "books__tags").order_by("id")[:3]]
    yield "select_related", [[borrowing.copy.book.author.name, str(borrowing.copy.barcode), str(borrowing.copy.bought), borrowing.scan.hex(), str(borrowing.since)]
                             for borrowing in Borrowing.objects.select_related("copy__book__author").order_by("id")[:6]]
    yield "durations", [str(c.bought) for c in Copy.objects.filter(bought__gt=datetime.timedelta(days=36)).order_by("id")]
    with transaction.atomic():
        yield "lock", list(Tag.objects.select_for_update(skip_locked=True).order_by("id").values_list("id", flat=True))
    for form in ("traditional", "tree", "json"):
        yield f"explain {form}", bool(books.filter(author_id=1).explain(format=form))
    yield "explain analyze", "actual time=" in books.filter(author_id=1).explain(analyze=True)


def json_queried():
    books, authors = Book.objects, Author.objects
    ids = lambda q: list(q.order_by("id").values_list("id", flat=True))  # noqa: E731
    yield "key", ids(books.filter(facts__shelf="s1"))
    yield "number", ids(books.filter(facts__rating__gte=2.5))
    yield "path", ids(authors.filter(profile__home__city="city 1"))
    yield "boolean", ids(authors.filter(profile__home__open=True))
    yield "element", ids(books.filter(facts__tags__1=2))
    yield "contains", ids(authors.filter(profile__contains={"languages": ["en"]}))
    yield "contained_by", ids(books.filter(facts__tags__contained_by=[0, 1]))
    yield "has_key", [ids(books.filter(facts__has_key="rating")), ids(books.filter(facts__has_any_keys=["none", "shelf"])), ids(books.filter(facts__isnull=True))]
    yield "order by a member", list(books.exclude(facts=None).order_by("facts__rating", "id").values_list("id", "facts__rating")[:12])
    yield "group by a member", list(books.values("facts__shelf").annotate(n=Count("id")).order_by("facts__shelf"))
    yield "in", ids(books.filter(facts__shelf__in=["s0", "s2"]))


def administered():
    User.objects.create_superuser("editor", "editor@example.com", "secret")
    client = Client()

    def page(address, **fields):
        response = client.post(address, fields, follow=True) if fields else client.get(address)
        text = response.content.decode()
        titles = re.findall(r'class="field-(?:title|__str__|name)[^>]*><a[^>]*>(.*?)</a>', text)
        messages = re.findall(r'<li class="(?:success|error|warning)">(.*?)</li>', text, re.S)
        counted = re.findall(r"(\d+ (?:results?|books?|authors?|tags?))", text)[:2]
        return [response.status_code, titles, [re.sub(r"<[^>]*>", "", m).strip() for m in messages], counted]

    yield "log in", page("/admin/login/", username="editor", password="secret", next="/admin/")[0]
    for address in ("/admin/", "/admin/library/book/", "/admin/library/book/?q=größe", "/admin/library/book/?o=-4.1", "/admin/library/book/?tags__id__exact=2&author__id__exact=3",
                    "/admin/library/book/?added__year=2024&added__month=3", "/admin/library/author/", "/admin/library/book/1/change/", "/admin/library/book/1/history/"):
        yield f"page {address}", page(address)
    yield "add a tag", page("/admin/library/tag/add/", word="by-hand")
    yield "add the same tag", page("/admin/library/tag/add/", word="by-hand")[0]
    yield "change a book", page("/admin/library/book/2/change/", title="Changed ñ", author="2", tags=["1", "3"], pages="9", price="3.50", facts='{"a": [1]}')
    yield "delete a tag", page("/admin/library/tag/1/delete/", post="yes")
    yield "delete several", page("/admin/library/tag/", action="delete_selected", _selected_action=["2", "3"], post="yes")
    yield "add a group", page("/admin/auth/group/add/", name="librarians", permissions=["1", "2", "3"])
    yield "permissions", list(Group.objects.get().permissions.order_by("id").values_list("codename", flat=True))


def deleted():
    author = Author.objects.annotate(n=Count("books")).filter(n=0).first()
    yield "delete without books", author.delete()
    Copy.objects.all().delete()
    yield "cascade", Author.objects.order_by("-id").first().delete()
    yield "left", [m.objects.count() for m in (Author, Tag, Book, Copy, Borrowing)] + [Author.objects.filter(mentor=None).count()]


def dumped():
    text = io.StringIO()
    call_command("dumpdata", "library", stdout=text, indent=1)
    call_command("flush", interactive=False, verbosity=0)
    name = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"nfold-django-{os.getpid()}.json")
    with open(name, "w") as f:
        f.write(text.getvalue())
    try:
        yield "load", command("loaddata", name)
    finally:
        os.unlink(name)
    yield "loaded", [m.objects.count() for m in (Author, Tag, Book, Copy, Borrowing)]
    again = io.StringIO()
    call_command("dumpdata", "library", stdout=again, indent=1)
    yield "same dump", text.getvalue() == again.getvalue()


def migrated_back():
    yield "backwards", command("migrate", "library", "0002")
    yield "forwards", command("migrate", "library")


for part in (migrated, filled, refusals, queried, json_queried, administered, deleted, dumped, migrated_back):
    found.update(part())
json.dump(found, sys.stdout, default=str)
