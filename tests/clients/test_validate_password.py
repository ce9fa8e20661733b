"""validate_password: what its recorded statements (tests/sql/validate_password.test) cannot
show."""
import os

import pymysql
import server
from test_passwords import error, rows

URN = "'file://component_validate_password'"
DENIED = 1142
CANT_OPEN_LIBRARY = 1126
NOT_VALID_PASSWORD = 1819
TOO_FEW_CHANGED = 4165
WRONG_CURRENT_PASSWORD = 3891


def strength(conn, password):
    (answer,), = rows(conn, f"SELECT VALIDATE_PASSWORD_STRENGTH('{password}')")
    return answer


def test_validate_password_survives_a_restart(_):
    with server.Server() as srv:
        words = os.path.join(srv.datadir, "words")
        with open(words, "w", encoding="utf-8") as f:
            f.write("password\nSecret\nabc\n\nü12\nblue\nblue\n")
        with srv.connect() as admin:
            rows(admin, f"INSTALL COMPONENT {URN}")
            rows(admin, f"SET PERSIST validate_password.dictionary_file = '{words}'")
            rows(admin, "SET PERSIST validate_password.policy = 'STRONG'")
            rows(admin, "SET GLOBAL validate_password.length = 20")
        srv.stop()
        srv.start()
        with srv.connect() as admin:
            assert [urn for _, _, urn in rows(admin, "SELECT * FROM mysql.component")] == [URN.strip("'")]
            values = dict(rows(admin, "SHOW VARIABLES LIKE 'validate_password%'"))
            assert (values["validate_password.policy"], values["validate_password.length"]) == ("STRONG", "8"), values
            status = dict(rows(admin, "SHOW STATUS LIKE 'validate_password%'"))
            # As in MySQL, a word is a line, and words stay while a new file cannot be read.
            assert status["validate_password.dictionary_file_words_count"] == "5", status
            found = [strength(admin, p) for p in ("aA1!Password", "aA1!Secret", "aA1!abcd", "aA1!BLUE", "aA1!üü12üü")]
            assert found == [75, 100, 100, 75, 75], found
            assert error(admin, "CREATE USER u IDENTIFIED BY 'aA1!Password'") == NOT_VALID_PASSWORD
            for unusable in ("/nonexistent", srv.datadir, ""):
                rows(admin, f"SET GLOBAL validate_password.dictionary_file = '{unusable}'")
                assert strength(admin, "aA1!Password") == 75, unusable
            rows(admin, f"UNINSTALL COMPONENT {URN}")
        srv.stop()
        srv.start()
        with srv.connect() as admin:
            assert rows(admin, "SELECT * FROM mysql.component") == ()
            rows(admin, "CREATE USER u IDENTIFIED BY 'x'")
            # What SET PERSIST stored comes back with the component.
            rows(admin, f"INSTALL COMPONENT {URN}")
            assert rows(admin, "SELECT @@validate_password.policy") == (("STRONG",),)


def test_new_passwords_differ_from_the_old_and_from_the_name(srv):
    with srv.connect() as admin:
        rows(admin, f"INSTALL COMPONENT {URN} SET GLOBAL validate_password.policy = LOW, validate_password.length = 4, "
                    "validate_password.changed_characters_percentage = 50")
        rows(admin, "CREATE USER jeff IDENTIFIED BY 'abcdefgh'")
    with srv.connect("jeff", "abcdefgh") as own:
        assert (strength(own, "jeff"), strength(own, "ffej"), strength(own, "JEFF")) == (0, 0, 50)
        for name in ("jeff", "ffej"):
            assert error(own, f"ALTER USER USER() IDENTIFIED BY '{name}'") == NOT_VALID_PASSWORD
            assert error(own, f"SET PASSWORD = '{name}'") == NOT_VALID_PASSWORD
        change = "ALTER USER USER() IDENTIFIED BY '{}' REPLACE '{}'"
        for new in ("abcdefgx", "ABCDxxxx", "hgfedcba", "aaaaaaaaaaaaaaaa", "aaaaxyz"):
            assert error(own, change.format(new, "abcdefgh")) == TOO_FEW_CHANGED, new
        assert error(own, change.format("abc", "abcdefgh")) == NOT_VALID_PASSWORD
        assert error(own, change.format("wxyz", "wrong")) == WRONG_CURRENT_PASSWORD
        assert error(own, change.format("wxyz", "abcdefgh")) is None
        # Without the old password there is nothing to compare.
        assert error(own, "SET PASSWORD = 'wxya'") is None
    with srv.connect() as admin:
        rows(admin, f"UNINSTALL COMPONENT {URN}")


def test_components_need_privileges_on_their_table(srv):
    with srv.connect() as admin:
        rows(admin, "CREATE USER low")
        rows(admin, "GRANT SELECT ON *.* TO low")
        with srv.connect("low") as low:
            assert error(low, f"INSTALL COMPONENT {URN}") == DENIED
            rows(admin, "GRANT INSERT ON mysql.component TO low")
        with srv.connect("low") as low:
            assert error(low, f"INSTALL COMPONENT {URN}") is None
            assert error(low, f"UNINSTALL COMPONENT {URN}") == DENIED
        rows(admin, f"UNINSTALL COMPONENT {URN}")
        assert error(admin, "INSTALL COMPONENT 'file://component_nothing'") == CANT_OPEN_LIBRARY
        assert error(admin, "INSERT INTO mysql.component VALUES (9, 9, 'x')") is not None
