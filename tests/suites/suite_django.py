"""Django's own tests from its source package: those that use a database."""

import json
import os
import subprocess

import target

VERSION = "5.2.8"
# The driver is built from its source, with Debian's libmariadb-dev.
PACKAGES = (f"django=={VERSION}", "mysqlclient==2.2.7", "sqlparse", "asgiref", "tblib", "jinja2", "PyYAML", "tzdata")
DATABASES = ("suite_default", "suite_other", "suite_default_server", "suite_other_server")
OPTIONS = {"innodb_buffer_pool_size": "1G"}
LABELS = """
admin_changelist admin_filters admin_inlines admin_ordering admin_utils admin_views aggregation
aggregation_regress annotations async auth_tests backends basic bulk_create cache composite_pk
constraints contenttypes_tests custom_columns custom_lookups custom_managers custom_methods
custom_migration_operations custom_pk datatypes dates datetimes db_functions db_typecasts db_utils
defer defer_regress delete delete_regress distinct_on_fields empty expressions expressions_case
expressions_window extra_regress field_defaults field_subclassing filtered_relation fixtures
fixtures_regress flatpages_tests force_insert_update foreign_object from_db_value generic_inline_admin
generic_relations generic_relations_regress generic_views get_earliest_or_latest get_object_or_404
get_or_create indexes inline_formsets inspectdb introspection known_related_objects lookup m2m_and_m2o
m2m_intermediary m2m_multiple m2m_recursive m2m_regress m2m_signals m2m_through m2m_through_regress
m2o_recursive managers_regress many_to_many many_to_one many_to_one_null max_lengths migrate_signals
migration_test_data_persistence migrations migrations2 model_fields model_forms model_formsets
model_formsets_regress model_indexes model_inheritance model_inheritance_regress model_meta
model_options model_regress model_utils multiple_database mutually_referential nested_foreign_keys
null_fk null_fk_ordering null_queries one_to_one or_lookups order_with_respect_to ordering pagination
prefetch_related properties proxy_model_inheritance proxy_models queries queryset_pickle raw_query
redirects_tests reserved_names reverse_lookup save_delete_hooks schema select_for_update
select_related select_related_onetoone select_related_regress serializers sessions_tests sitemaps_tests
sites_tests string_lookup swappable_models syndication_tests test_client test_runner test_utils
timezones transaction_hooks transactions unmanaged_models update update_only_fields validation
view_tests xor_lookups
""".split()


def prepare(cache):
    target.python_environment(cache, *PACKAGES)
    target.python_source(cache, "django", VERSION)


def outcomes(where, cache, only):
    tests = os.path.join(cache, f"django-{VERSION}", "tests")
    result = where.new_file(cache, ".json")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "django_settings")
    environment = dict(os.environ, SUITE_HOST=where.host, SUITE_PORT=str(where.port), SUITE_RESULT=result,
                       PYTHONPATH=here, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore")
    command = [target.python(cache), "runtests.py", "--settings=suite_settings", "--parallel=1", "--noinput", "--verbosity=0",
               *(only or LABELS)]
    with open(where.new_file(cache, ".log"), "w") as log:
        # The exit status says that a test failed; the result says which.
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log)
    with open(result) as f:
        return json.load(f)
