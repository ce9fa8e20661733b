package work;

import java.io.StringWriter;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import liquibase.Liquibase;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.DatabaseObject;
import org.flywaydb.core.Flyway;

/** Flyway's and Liquibase's migrations of one database: Migrations URL USER PASSWORD DIRECTORY. */
public class Migrations {
    private static final Outcomes out = new Outcomes();
    private static String[] server;

    public static void main(String[] arguments) throws Exception {
        server = arguments;
        Logger.getLogger("").setLevel(Level.OFF);
        Path here = Path.of(arguments[3]);
        flyway(here);
        liquibase(here.resolve("liquibase"));
        out.write();
    }

    private static void flyway(Path here) {
        var settings = Flyway.configure().dataSource(server[0], server[1], server[2]).placeholders(Map.of("prefix", "Kopie")).cleanDisabled(false).outOfOrder(true);
        Flyway first = settings.locations("filesystem:" + here.resolve("flyway")).load();
        Flyway later = settings.locations("filesystem:" + here.resolve("flyway"), "filesystem:" + here.resolve("flyway-later")).load();
        out.step("flyway: migrate", () -> first.migrate().migrations.stream().map(m -> m.version + " " + m.description).toList());
        out.step("flyway: migrate again", () -> first.migrate().migrationsExecuted);
        out.step("flyway: validate", () -> first.validateWithResult().validationSuccessful);
        out.step("flyway: info", () -> info(first));
        out.step("flyway: what is there", Migrations::contents);
        out.step("flyway: a broken migration", () -> later.migrate().success);
        out.step("flyway: info of it", () -> info(later));
        out.step("flyway: repair", () -> later.repair().repairActions);
        out.step("flyway: half of it", () -> query("SELECT id FROM half_done"));
        out.step("flyway: clean", () -> { first.clean(); return query("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"); });
        out.step("flyway: migrate after it", () -> first.migrate().migrationsExecuted);
        out.step("flyway: two at once", () -> {
            first.clean();
            AtomicInteger done = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int n = 0; n < 3; n++) threads.add(new Thread(() -> done.addAndGet(settings.locations("filesystem:" + here.resolve("flyway")).load().migrate().migrationsExecuted)));
            for (Thread t : threads) t.start();
            for (Thread t : threads) t.join();
            return done.get();
        });
        out.step("flyway: the last clean", () -> first.clean().schemasCleaned.size());
    }

    private static Object info(Flyway flyway) {
        return Arrays.stream(flyway.info().all()).map(m -> m.getVersion() + " " + m.getDescription() + " " + m.getState()).toList();
    }

    private static void liquibase(Path directory) throws Exception {
        var database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(DriverManager.getConnection(server[0], server[1], server[2])));
        try (Liquibase liquibase = new Liquibase("changelog.xml", new DirectoryResourceAccessor(directory), database)) {
            out.step("liquibase: database", () -> database.getDatabaseProductName() + " " + database.getShortName());
            out.step("liquibase: what is to do", () -> liquibase.listUnrunChangeSets(null, null).stream().map(c -> c.getId()).toList());
            out.step("liquibase: as SQL", () -> {
                StringWriter text = new StringWriter();
                liquibase.update(4, "", text);
                return text.toString().lines().filter(l -> l.matches("(?i)(create|alter|insert into (person|pet)|update (person|pet)).*")).toList();
            });
            out.step("liquibase: update", () -> { liquibase.update(""); return contents(); });
            out.step("liquibase: update again", () -> { liquibase.update(""); return liquibase.listUnrunChangeSets(null, null).size(); });
            out.step("liquibase: log", () -> query("SELECT id, author, orderexecuted, exectype, md5sum, tag FROM DATABASECHANGELOG ORDER BY orderexecuted"));
            out.step("liquibase: snapshot", () -> {
                DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
                List<String> found = new ArrayList<>();
                for (Class<? extends DatabaseObject> type : List.of(liquibase.structure.core.Table.class, liquibase.structure.core.Column.class, liquibase.structure.core.Index.class, liquibase.structure.core.ForeignKey.class,
                                                                    liquibase.structure.core.UniqueConstraint.class, liquibase.structure.core.PrimaryKey.class, liquibase.structure.core.View.class)) {
                    for (DatabaseObject o : snapshot.get(type)) {
                        var more = o instanceof liquibase.structure.core.Column c ? " " + c.getType() + " " + c.isNullable() + " " + c.getDefaultValue() + " " + c.isAutoIncrement() : "";
                        found.add(type.getSimpleName() + " " + o.toString().replaceAll("app_hibernate\\.", "") + more);
                    }
                }
                Collections.sort(found);
                return found;
            });
            out.step("liquibase: difference to itself", () -> liquibase.diff(database, database, new CompareControl()).areEqual());
            out.step("liquibase: roll back to a tag", () -> { liquibase.rollback("größe", ""); return query("SELECT id FROM DATABASECHANGELOG ORDER BY orderexecuted"); });
            out.step("liquibase: roll back two", () -> { liquibase.rollback(2, ""); return contents(); });
            out.step("liquibase: update after it", () -> { liquibase.update(""); return contents(); });
            out.step("liquibase: locks", () -> liquibase.listLocks().length);
            out.step("liquibase: checksums", () -> { liquibase.clearCheckSums(); liquibase.update(""); return query("SELECT COUNT(md5sum) FROM DATABASECHANGELOG"); });
            out.step("liquibase: drop all", () -> { liquibase.dropAll(); return query("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"); });
            out.step("liquibase: update from nothing", () -> { liquibase.update(""); return query("SELECT COUNT(*) FROM DATABASECHANGELOG"); });
        }
    }

    /** The rows of all tables but the tools' own. */
    private static Object contents() throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (Object table : query("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT REGEXP 'flyway|DATABASECHANGE'")) {
            String name = ((List<?>) table).get(0).toString();
            found.put(name, query("SELECT * FROM `" + name + "` ORDER BY 1"));
        }
        return found;
    }

    private static List<Object> query(String statement) throws Exception {
        List<Object> found = new ArrayList<>();
        try (var connection = DriverManager.getConnection(server[0], server[1], server[2]); var made = connection.createStatement(); var rows = made.executeQuery(statement)) {
            while (rows.next()) {
                List<Object> row = new ArrayList<>();
                for (int n = 1; n <= rows.getMetaData().getColumnCount(); n++) row.add(rows.getString(n));
                found.add(row);
            }
        }
        return found;
    }
}
