"""What a Django project does with its database `django` on 127.0.0.1:PORT: migrate, inspectdb,
models. Run by test_tools.py in a process of its own."""

import datetime
import decimal
import io
import sys
import uuid

import pymysql

pymysql.version_info = (1, 4, 6, "final", 0)  # Django checks mysqlclient's version
pymysql.install_as_MySQLdb()

import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    DATABASES={"default": dict(ENGINE="django.db.backends.mysql", NAME="django", USER="root", HOST="127.0.0.1", PORT=sys.argv[1])},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.sessions"],
    USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", SECRET_KEY="x")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Count, F, Q, Sum  # noqa: E402


class Item(models.Model):
    name = models.CharField(max_length=30, unique=True)
    born = models.DateField(null=True)
    at = models.DateTimeField(auto_now_add=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    ok = models.BooleanField(default=True)
    span = models.DurationField(null=True)
    key = models.UUIDField(default=uuid.uuid4)
    text = models.TextField(default="")
    data = models.BinaryField(null=True)
    number = models.IntegerField(default=1)

    class Meta:
        app_label = "shop"
        indexes = [models.Index(fields=["born", "price"], name="two")]


call_command("migrate", verbosity=0)
call_command("migrate", verbosity=0)  # nothing is left to do
with connection.schema_editor() as editor:
    editor.create_model(Item)

out = io.StringIO()
call_command("inspectdb", stdout=out)
for line in ("class ShopItem(models.Model)", "name = models.CharField(unique=True, max_length=30)", "price = models.DecimalField(max_digits=8, decimal_places=2)"):
    assert line in out.getvalue(), out.getvalue()
with connection.cursor() as cursor:
    constraints = connection.introspection.get_constraints(cursor, "shop_item")
    assert constraints["two"]["columns"] == ["born", "price"] and constraints["PRIMARY"]["primary_key"], constraints
assert "django_session" in connection.introspection.table_names()

for n in range(10):
    Item.objects.create(name=f"n{n}", born=datetime.date(2020, 1 + n, 1), price=decimal.Decimal(n) / 4, data=b"\0\xff", text="é", span=datetime.timedelta(hours=n))
one = Item.objects.get(name="n3")
assert (one.price, one.span, bytes(one.data), one.text) == (decimal.Decimal("0.75"), datetime.timedelta(hours=3), b"\0\xff", "é")
assert isinstance(one.key, uuid.UUID) and one.at.tzinfo is not None
with transaction.atomic():
    Item.objects.filter(pk=one.pk).update(number=F("number") + 41)
    try:
        with transaction.atomic():
            Item.objects.create(name="n3")
        raise AssertionError("a second row of that name")
    except IntegrityError as e:
        assert e.args[0] == 1062
assert Item.objects.get(pk=one.pk).number == 42
assert Item.objects.filter(Q(name__startswith="n1") | Q(name__iexact="N2") | Q(name__regex="^n[34]$")).count() == 4
assert Item.objects.aggregate(total=Sum("number"), n=Count("id")) == {"total": 51, "n": 10}
assert Item.objects.filter(born__month=5).count() == 1 and len(Item.objects.dates("born", "month")) == 10
assert [i.name for i in Item.objects.order_by("-id")[1:3]] == ["n8", "n7"]
with transaction.atomic():
    assert len(Item.objects.select_for_update().filter(name__in=["n5", "n6"])) == 2
Item.objects.bulk_create([Item(name=f"bulk{n}") for n in range(50)])
assert Item.objects.filter(name__contains="bulk").delete()[0] == 50

number = Item._meta.get_field("number")
wider = models.BigIntegerField(null=True)
wider.set_attributes_from_name("number")
wider.model = Item
with connection.schema_editor() as editor:
    editor.alter_field(Item, number, wider)
    editor.remove_index(Item, Item._meta.indexes[0])
    editor.delete_model(Item)
assert "shop_item" not in connection.introspection.table_names()
