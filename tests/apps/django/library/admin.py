from django.contrib import admin

from .models import Author, Book, Copy, Borrowing, Tag


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):
    list_display = ["title", "author", "pages", "price"]
    list_filter = ["author", "tags"]
    search_fields = ["title", "author__name", "tags__word"]
    date_hierarchy = "added"
    filter_horizontal = ["tags"]


admin.site.register([Author, Tag, Copy, Borrowing])
