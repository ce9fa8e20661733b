from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Concat


def fill(apps, _):
    apps.get_model("library", "Book").objects.update(subtitle=Concat(Value("of "), F("title")))


class Migration(migrations.Migration):
    dependencies = [("library", "0001_initial")]
    operations = [
        migrations.AddField("Book", "subtitle", models.CharField(max_length=255, default="", db_index=True)),
        migrations.AddField("Borrowing", "renewed", models.PositiveSmallIntegerField(default=0)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RenameField("Borrowing", "reader", "borrower"),
        migrations.AlterField("Borrowing", "borrower", models.CharField(max_length=90, null=True)),
        migrations.CreateModel("Shelf", [("id", models.BigAutoField(primary_key=True)), ("name", models.CharField(max_length=9, unique=True)),
                                         ("books", models.ManyToManyField("library.Book", related_name="shelves"))]),
    ]
