package work;

import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.*;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate at work on the entities of Model: Work URL USER PASSWORD. */
public class Work {
    private static final Outcomes out = new Outcomes();
    private static String[] server;

    public static void main(String[] arguments) throws Exception {
        server = arguments;
        Logger.getLogger("").setLevel(Level.OFF);
        try (SessionFactory factory = configuration(Model.CLASSES).buildSessionFactory()) {
            out.step("dialect", () -> factory.unwrap(org.hibernate.engine.spi.SessionFactoryImplementor.class).getJdbcServices().getDialect().getClass().getSimpleName());
            out.step("drop what is not there", () -> { factory.getSchemaManager().drop(true); return "done"; });
            out.step("create", () -> { factory.getSchemaManager().create(false); return metadata(); });
            out.step("validate", () -> { factory.getSchemaManager().validate(); return "valid"; });
            out.step("create again", () -> { factory.getSchemaManager().create(false); return metadata().size(); });
            new Steps(factory, out).run();
        }
        out.step("update", () -> {
            try (SessionFactory later = configuration(Later.CLASSES, "hibernate.hbm2ddl.auto", "update").buildSessionFactory()) {
                later.getSchemaManager().validate();
                return later.fromTransaction(s -> {
                    s.persist(supplier());
                    return s.createSelectionQuery("select p.code, p.level, p.supplier.id from Product p order by p.code", Object[].class).getResultList();
                });
            }
        });
        out.step("the first entities after the update", () -> {
            try (SessionFactory factory = configuration(Model.CLASSES).buildSessionFactory()) {
                factory.getSchemaManager().validate();
                return "valid";
            }
        });
        out.step("validate what is missing", () -> {
            sql("ALTER TABLE Supplier DROP COLUMN since");
            try (SessionFactory later = configuration(Later.CLASSES, "hibernate.hbm2ddl.auto", "validate").buildSessionFactory()) {
                return "valid";
            }
        });
        out.write();
    }

    private static Later.Supplier supplier() {
        Later.Supplier made = new Later.Supplier();
        made.name = "Müller";
        return made;
    }

    /** Settings for these entities; `more` is name, value, name, value ... */
    static Configuration configuration(Class<?>[] classes, String... more) {
        Configuration made = new Configuration();
        for (Class<?> entity : classes) made.addAnnotatedClass(entity);
        made.setProperty("hibernate.connection.url", server[0]).setProperty("hibernate.connection.username", server[1]).setProperty("hibernate.connection.password", server[2])
            .setProperty("hibernate.connection.pool_size", "4").setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.order_inserts", "true").setProperty("hibernate.order_updates", "true")
            .setProperty("hibernate.jdbc.time_zone", "UTC").setProperty("hibernate.default_batch_fetch_size", "8").setProperty("hibernate.query.hql.json_functions_enabled", "true")
            .setProperty("hibernate.auto_quote_keyword", "true");
        for (int n = 0; n < more.length; n += 2) made.setProperty(more[n], more[n + 1]);
        return made;
    }

    /** What the driver's metadata says of all tables. */
    static Map<String, Object> metadata() throws Exception {
        Map<String, Object> found = new TreeMap<>();
        try (var connection = DriverManager.getConnection(server[0], server[1], server[2])) {
            DatabaseMetaData data = connection.getMetaData();
            String database = connection.getCatalog();
            List<String> tables = new ArrayList<>();
            try (var rows = data.getTables(database, null, "%", new String[] {"TABLE"})) {
                while (rows.next()) tables.add(rows.getString("TABLE_NAME"));
            }
            for (String table : tables) {
                found.put(table + " columns", all(data.getColumns(database, null, table.replace("_", "\\_"), "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "CHAR_OCTET_LENGTH", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN"));
                found.put(table + " keys", all(data.getPrimaryKeys(database, null, table), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
                found.put(table + " indexes", all(data.getIndexInfo(database, null, table, false, true), "INDEX_NAME", "NON_UNIQUE", "TYPE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC"));
                found.put(table + " parents", all(data.getImportedKeys(database, null, table), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME", "PK_NAME", "DEFERRABILITY"));
                found.put(table + " children", all(data.getExportedKeys(database, null, table), "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "DELETE_RULE", "FK_NAME"));
                found.put(table + " best identifier", all(data.getBestRowIdentifier(database, null, table, DatabaseMetaData.bestRowSession, true), "COLUMN_NAME", "TYPE_NAME"));
            }
        }
        return found;
    }

    private static List<Object> all(ResultSet rows, String... names) throws Exception {
        List<Object> found = new ArrayList<>();
        try (rows) {
            while (rows.next()) {
                List<Object> row = new ArrayList<>();
                for (String name : names) row.add(rows.getString(name));
                found.add(row);
            }
        }
        return found;
    }

    static void sql(String statement) throws Exception {
        try (var connection = DriverManager.getConnection(server[0], server[1], server[2]); var made = connection.createStatement()) {
            made.execute(statement);
        }
    }
}
