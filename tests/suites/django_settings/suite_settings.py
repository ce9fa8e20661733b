"""The settings under which Django runs its own tests: two databases on one server, and a test
runner that writes each test's outcome into a file."""

import json
import os
import unittest

from django.test.runner import DiscoverRunner


def database(name):
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": f"{name}_server",
        "HOST": os.environ["SUITE_HOST"],
        "PORT": os.environ["SUITE_PORT"],
        "USER": "sb",
        "PASSWORD": "sb",
        "TEST": {"NAME": name, "CHARSET": "utf8mb4", "COLLATION": "utf8mb4_0900_ai_ci"},
    }


DATABASES = {"default": database("suite_default"), "other": database("suite_other")}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "suite_settings.Runner"


class Result(unittest.TextTestResult):
    """Collects {test: "" if it passed, else the traceback}. A test of which one subtest fails has
    failed."""

    outcomes = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.outcomes.setdefault(test.id(), "")

    def failed(self, test, error):
        whole = getattr(test, "test_case", test)
        self.outcomes[whole.id()] = self.outcomes.get(whole.id()) or self._exc_info_to_string(error, whole)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.failed(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.failed(subtest, error)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.outcomes[test.id()] = "succeeded although it was expected to fail"


class Runner(DiscoverRunner):
    """Django's runner, with the result above."""

    def get_resultclass(self):
        return Result

    def run_suite(self, suite, **kwargs):
        try:
            return super().run_suite(suite, **kwargs)
        finally:
            with open(os.environ["SUITE_RESULT"], "w") as f:
                json.dump(Result.outcomes, f)
