"""Settings of the project. The database comes from the environment."""

import os

import pymysql

pymysql.version_info = (2, 2, 1, "final", 0)  # what Django asks of its driver
pymysql.install_as_MySQLdb()

BASE = os.path.dirname(os.path.abspath(__file__))
SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
                  "django.contrib.messages", "library"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.common.CommonMiddleware",
              "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
              "django.contrib.messages.middleware.MessageMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
              "OPTIONS": {"context_processors": ["django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
                                                 "django.contrib.messages.context_processors.messages"]}}]
ROOT_URLCONF = "urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "NAME": os.environ["DATABASE"],
                         "PORT": os.environ["DATABASE_PORT"], "USER": os.environ["DATABASE_USER"],
                         "PASSWORD": os.environ["DATABASE_PASSWORD"], "OPTIONS": {"charset": "utf8mb4"}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
