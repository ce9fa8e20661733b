"""A library: authors, books with tags and copies, borrowings. It has each kind of relation and
constraint that Django's schema editor makes."""

from django.db import models
from django.db.models.functions import Lower, Now


class Author(models.Model):
    name = models.CharField(max_length=100, db_index=True)
    born = models.DateField(null=True)
    profile = models.JSONField(default=dict)
    mentor = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="pupils")

    class Meta:
        constraints = [models.UniqueConstraint(Lower("name"), "born", name="one_of_a_name_and_birthday")]

    def __str__(self):
        return self.name


class Tag(models.Model):
    word = models.SlugField(unique=True)

    def __str__(self):
        return self.word


class Book(models.Model):
    title = models.CharField(max_length=200)
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    tags = models.ManyToManyField(Tag, blank=True)
    pages = models.PositiveIntegerField()
    price = models.DecimalField(max_digits=8, decimal_places=2)
    facts = models.JSONField(null=True, blank=True)
    added = models.DateTimeField(db_default=Now())
    title_length = models.GeneratedField(expression=models.functions.Length("title"), output_field=models.IntegerField(), db_persist=True)

    class Meta:
        ordering = ["title"]
        indexes = [models.Index(fields=["author", "-pages"]), models.Index(Lower("title"), name="by_lower_title")]
        constraints = [models.CheckConstraint(condition=models.Q(pages__gt=0), name="book_has_pages"),
                       models.CheckConstraint(condition=models.Q(price__gte=0) & models.Q(price__lt=10000), name="price_is_sane")]

    def __str__(self):
        return self.title


class Copy(models.Model):
    book = models.ForeignKey(Book, on_delete=models.PROTECT)
    barcode = models.UUIDField(unique=True)
    bought = models.DurationField(null=True)


class Borrowing(models.Model):
    copy = models.OneToOneField(Copy, on_delete=models.CASCADE)
    reader = models.CharField(max_length=50)
    since = models.DateTimeField()
    fine = models.FloatField(default=0)
    scan = models.BinaryField(null=True)
