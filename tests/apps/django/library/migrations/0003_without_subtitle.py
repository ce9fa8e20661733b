from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("library", "0002_subtitle")]
    operations = [
        migrations.DeleteModel("Shelf"),
        migrations.AlterField("Borrowing", "borrower", models.CharField(max_length=50)),
        migrations.RenameField("Borrowing", "borrower", "reader"),
        migrations.RemoveField("Borrowing", "renewed"),
        migrations.AlterField("Book", "subtitle", models.TextField(null=True)),
        migrations.RemoveField("Book", "subtitle"),
        migrations.RemoveIndex("Book", "by_lower_title"),
        migrations.AddIndex("Book", models.Index(models.functions.Lower("title"), name="by_lower_title")),
    ]
