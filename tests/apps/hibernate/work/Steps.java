package work;

import jakarta.persistence.LockModeType;
import jakarta.persistence.Timeout;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.*;
import java.util.*;
import java.util.function.Consumer;
import org.hibernate.*;
import org.hibernate.envers.AuditReaderFactory;
import work.Model.*;

/** What the sessions of one factory do, in order. */
class Steps {
    private final SessionFactory factory;
    private final Outcomes out;

    Steps(SessionFactory factory, Outcomes out) {
        this.factory = factory;
        this.out = out;
    }

    void run() {
        fill();
        types();
        inheritance();
        collections();
        versions();
        constraints();
        new Queries(factory, out).run();
        changes();
        locks();
        audit();
        stateless();
        out.step("count before truncating", () -> factory.fromSession(s -> s.createSelectionQuery("select count(*) from Customer", Long.class).getSingleResult()));
    }

    private void step(String name, java.util.function.Function<Session, Object> work) {
        out.step(name, () -> factory.fromTransaction(s -> Outcomes.plain(work.apply(s))));
    }

    private void change(String name, Consumer<Session> work) {
        out.step(name, () -> { factory.inTransaction(work); return "done"; });
    }

    static final String[] NAMES = {"Änne Müller", "Zoë O'Hara", "Иван Иванов", "山田 花子", "100%", "_under_", "back\\slash", "😀 Emoji", "Straße", "STRASSE", "", "  spaces "};

    private void fill() {
        change("tags", s -> { for (String name : new String[] {"rot", "grün", "blau", "größe", "😀"}) s.persist(new Tag(name)); });
        change("categories", s -> {
            Category root = new Category("Wurzel", null);
            s.persist(root);
            Category parent = root;
            for (int n = 1; n < 8; n++) {
                Category made = new Category("Ebene " + n, n % 3 == 0 ? root : parent);
                s.persist(made);
                parent = made;
            }
        });
        change("products", s -> { for (int n = 0; n < 30; n++) s.persist(new Product("P" + (100 + n), "Ware " + n % 7, n + ".9" + n % 10, n * 3 % 17)); });
        change("customers", s -> {
            List<Tag> tags = s.createSelectionQuery("from Tag order by id", Tag.class).getResultList();
            for (int n = 0; n < NAMES.length; n++) {
                Customer made = new Customer(NAMES[n], "c" + n + "@example.com");
                made.level = Model.Level.values()[n % 3];
                made.ordinal = n % 4 == 3 ? null : Model.Level.values()[n % 4];
                made.credit = new BigDecimal(n * 1234567).movePointLeft(4);
                made.born = LocalDate.of(1950 + 5 * n, 1 + n % 12, 1 + n);
                made.home = n % 5 == 4 ? null : new Address("Straße " + n, "80" + n, n % 2 == 0 ? "Zürich" : "Köln");
                made.settings = n % 6 == 5 ? null : new TreeMap<>(Map.of("size", n, "theme", n % 2 == 0 ? "dark" : "größe 😀", "list", List.of(n, n + 1, "x"), "nested", Map.of("a", n / 7.0, "b", n % 2 == 0)));
                made.contact = n % 4 == 1 ? null : new Contact("+41 " + n, n, new BigDecimal(n).movePointLeft(2));
                made.numbers = List.of("n" + n, "größe");
                made.nicks.addAll(List.of("nick" + n, "Größe"));
                made.attributes.putAll(Map.of("farbe", "f" + n, "ü😀", "v"));
                made.addresses.addAll(List.of(new Address("first", "1", "A"), new Address("second", "2", "B"), new Address("third " + n, null, "C")));
                made.tags.addAll(tags.subList(n % 3, n % 3 + 2));
                made.profile = new Profile();
                made.profile.customer = made;
                made.profile.text = "text 😀 ".repeat(n * 100);
                made.profile.picture = new byte[n * 50];
                s.persist(made);
            }
        });
        change("purchases", s -> {
            List<Product> products = s.createSelectionQuery("from Product order by code", Product.class).getResultList();
            int n = 0;
            for (Customer customer : s.createSelectionQuery("from Customer order by id", Customer.class).getResultList()) {
                for (int k = 0; k < n % 4; k++) {
                    Purchase made = new Purchase(customer, LocalDateTime.of(2024, 1 + n, 1 + 7 * k, n, 30 * (k % 2)));
                    for (int line = 1; line <= 1 + (n + k) % 3; line++) made.lines.add(new Line(made, line, products.get((n * 5 + k * 3 + line) % 30), n + line));
                    customer.purchases.add(made);
                }
                n++;
            }
        });
        change("a batch", s -> {
            for (int n = 0; n < 95; n++) {
                Pooled made = new Pooled();
                made.name = "pooled " + n;
                made.score = n * n % 40;
                s.persist(made);
            }
        });
        step("keys of a sequence", s -> s.createSelectionQuery("select min(id), max(id), count(*) from Pooled", Object[].class).getSingleResult());
    }

    private void types() {
        change("one of each", s -> {
            Everything e = new Everything();
            e.id = 1;
            e.truth = true;
            e.tiny = -128;
            e.small = 32767;
            e.middle = Integer.MIN_VALUE;
            e.big = Long.MAX_VALUE;
            e.single = 1.5e-7f;
            e.twice = Math.PI;
            e.letter = 'ß';
            e.text = "größe 😀";
            e.longText = "lang ".repeat(13000);
            e.longest = "länger ".repeat(20000);
            e.national = "日本語";
            e.fixed = "ab";
            e.decimal = new BigDecimal("12345.67");
            e.precise = new BigDecimal("1234567890123456789012345678.0123456789");
            e.integer = new BigInteger("12345678901234567890");
            e.date = LocalDate.of(1582, 10, 15);
            e.time = LocalTime.of(23, 59, 59);
            e.dateTime = LocalDateTime.of(2024, 2, 29, 12, 34, 56, 123456000);
            e.instant = Instant.parse("2024-07-01T10:20:30.654321Z");
            e.seconds = LocalDateTime.of(2024, 12, 31, 23, 59, 59, 600_000_000);
            e.offset = OffsetDateTime.parse("2024-07-01T10:20:30+05:30");
            e.offsetColumn = OffsetDateTime.parse("2024-07-01T10:20:30-03:00");
            e.duration = Duration.ofSeconds(3661, 5);
            e.year = Year.of(1999);
            e.zone = ZoneId.of("Europe/Zurich");
            e.uuid = UUID.nameUUIDFromBytes(new byte[] {1});
            e.uuidText = UUID.nameUUIDFromBytes(new byte[] {2});
            e.bytes = new byte[] {0, 1, -1, 39, 92};
            e.shortBytes = new byte[] {7};
            e.document = new TreeMap<>(Map.of("a", List.of(1, 2.5, "ü"), "b", Map.of()));
            e.integers = new int[] {3, 1, 2};
            e.texts = List.of("x", "größe", "\"quotes\"");
            e.level = Model.Level.HIGH;
            e.ordinal = Model.Level.MIDDLE;
            e.converted = "größer";
            e.old = Date.from(Instant.parse("2001-09-09T01:46:40Z"));
            e.currency = Currency.getInstance("CHF");
            e.locale = Locale.forLanguageTag("de-CH");
            s.persist(e);
            Everything nulls = new Everything();
            nulls.id = 2;
            nulls.letter = ' ';
            s.persist(nulls);
        });
        for (int id = 1; id <= 2; id++) {
            int key = id;
            step("read each of " + id, s -> {
                Everything e = s.find(Everything.class, key);
                Map<String, Object> values = new TreeMap<>();
                for (var field : Everything.class.getDeclaredFields()) {
                    try {
                        Object value = field.get(e);
                        values.put(field.getName(), value instanceof String text && text.length() > 100 ? text.length() + " " + text.hashCode() : value instanceof Date date ? date.toInstant() : value);
                    } catch (IllegalAccessException error) {
                        values.put(field.getName(), error.toString());
                    }
                }
                return values;
            });
        }
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("uuid", UUID.nameUUIDFromBytes(new byte[] {1}));
        values.put("uuidText", UUID.nameUUIDFromBytes(new byte[] {2}));
        values.put("date", LocalDate.of(1582, 10, 15));
        values.put("time", LocalTime.of(23, 59, 59));
        values.put("dateTime", LocalDateTime.of(2024, 2, 29, 12, 34, 56, 123456000));
        values.put("instant", Instant.parse("2024-07-01T10:20:30.654321Z"));
        values.put("offset", OffsetDateTime.parse("2024-07-01T04:50:30Z"));
        values.put("duration", Duration.ofSeconds(3661, 5));
        values.put("year", Year.of(1999));
        values.put("zone", ZoneId.of("Europe/Zurich"));
        values.put("bytes", new byte[] {0, 1, -1, 39, 92});
        values.put("precise", new BigDecimal("1234567890123456789012345678.0123456789"));
        values.put("integer", new BigInteger("12345678901234567890"));
        values.put("big", Long.MAX_VALUE);
        values.put("twice", Math.PI);
        values.put("letter", 'ß');
        values.put("truth", true);
        values.put("level", Model.Level.HIGH);
        values.put("ordinal", Model.Level.MIDDLE);
        values.put("converted", "größer");
        values.put("document", new TreeMap<>(Map.of("a", List.of(1, 2.5, "ü"), "b", Map.of())));
        values.put("integers", new int[] {3, 1, 2});
        values.put("fixed", "ab");
        values.put("locale", Locale.forLanguageTag("de-CH"));
        values.forEach((name, value) -> step("find by " + name, s -> s.createSelectionQuery("select e.id from Everything e where e." + name + " = :value", Integer.class).setParameter("value", value).getResultList()));
        change("set all to null", s -> {
            Everything e = s.find(Everything.class, 1);
            e.text = e.longText = null;
            e.document = null;
            e.instant = null;
            e.bytes = null;
            e.texts = null;
            e.twice = Double.MIN_VALUE;
        });
        change("an infinite number", s -> s.find(Everything.class, 1).twice = Double.POSITIVE_INFINITY);
        change("too many digits", s -> s.find(Everything.class, 1).precise = new BigDecimal("12345678901234567890123456789012"));
        change("a text that is too long", s -> s.find(Everything.class, 1).fixed = "abcdef");
        change("a time beyond a day", s -> s.createNativeMutationQuery("update Everything set `time` = '25:00:00' where id = 2").executeUpdate());
        step("read it", s -> s.createSelectionQuery("select e.time from Everything e where e.id = 2", LocalTime.class).getResultList());
    }

    private void inheritance() {
        change("vehicles", s -> {
            List<Customer> owners = s.createSelectionQuery("from Customer order by id", Customer.class).getResultList();
            for (int n = 0; n < 10; n++) {
                Vehicle made;
                if (n % 3 == 0) {
                    Truck truck = new Truck();
                    truck.load = n * 1.5;
                    made = truck;
                } else {
                    Car car = new Car();
                    car.doors = n % 2 + 2;
                    car.owner = owners.get(n);
                    made = car;
                }
                made.name = "vehicle " + n;
                made.wheels = 4 + n % 3;
                s.persist(made);
            }
        });
        change("payments", s -> {
            for (int n = 0; n < 9; n++) {
                Payment made;
                if (n % 3 == 1) {
                    CardPayment card = new CardPayment();
                    card.card = "4000" + n;
                    made = card;
                } else if (n % 3 == 2) {
                    CashPayment cash = new CashPayment();
                    cash.currency = n > 4 ? "CHF" : "EUR";
                    made = cash;
                } else made = new Payment();
                made.amount = new BigDecimal(n * 11).movePointLeft(1);
                s.persist(made);
            }
        });
        change("shapes", s -> {
            for (int n = 0; n < 12; n++) {
                Shape made;
                if (n % 2 == 0) {
                    Circle circle = new Circle();
                    circle.radius = n / 3.0;
                    made = circle;
                } else {
                    Square square = new Square();
                    square.side = n / 3.0f;
                    made = square;
                }
                made.colour = n % 4 < 2 ? "rot" : "grün";
                s.persist(made);
            }
        });
        change("a wrong discriminator", s -> s.createNativeMutationQuery("insert into Payment (kind, amount) values ('gold', 1)").executeUpdate());
    }

    private void collections() {
        change("collections change", s -> {
            Customer c = s.find(Customer.class, 1L);
            c.nicks.remove("Größe");
            c.nicks.add("GRÖSSE");
            c.attributes.put("farbe", "geändert");
            c.attributes.remove("ü😀");
            c.addresses.remove(0);
            c.addresses.add(0, new Address("new first", "9", "Z"));
            c.addresses.add(new Address("last", "10", "Y"));
            c.tags.clear();
            c.settings = new TreeMap<>(Map.of("replaced", true));
        });
        change("the same nick twice", s -> s.createNativeMutationQuery("insert into customer_nick (Customer_id, nick) values (1, 'grösse')").executeUpdate());
        step("read collections", s -> {
            Customer c = s.find(Customer.class, 1L);
            return List.of(c.nicks, c.attributes, c.addresses.stream().map(a -> a.street + a.zip).toList(), c.tags.size(), String.valueOf(c.settings), c.label, c.nameLength, c.version);
        });
        change("orphans", s -> {
            Customer c = s.find(Customer.class, 4L);
            c.purchases.get(0).lines.remove(0);
            c.purchases.remove(1);
        });
        step("lines that are left", s -> s.createSelectionQuery("select l.id.orderId, l.id.number, l.amount from Line l where l.purchase.customer.id = 4 order by 1, 2", Object[].class).getResultList());
        change("remove a customer with all", s -> s.remove(s.find(Customer.class, 11L)));
        step("profiles", s -> s.createSelectionQuery("select id, length(text) from Profile order by id", Object[].class).getResultList());
        change("a database cascade", s -> s.createNativeMutationQuery("update Category set parent_id = null where id = 5").executeUpdate());
        change("a deleted parent", s -> s.createMutationQuery("delete from Category where id = 2").executeUpdate());
        step("children without a parent", s -> s.createSelectionQuery("select c.id, c.parent.id from Category c left join c.parent order by c.id", Object[].class).getResultList());
        step("find by the natural key", s -> s.bySimpleNaturalId(Customer.class).load("C2@EXAMPLE.COM").id);
        step("several keys", s -> s.byMultipleIds(Customer.class).multiLoad(1L, 99L, 3L, 5L).stream().map(c -> c == null ? "none" : c.name).toList());
        step("a reference", s -> s.getReference(Customer.class, 99L).toString().length());
    }

    private void versions() {
        out.step("two at once", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                other.beginTransaction();
                Customer mine = one.find(Customer.class, 2L), yours = other.find(Customer.class, 2L);
                mine.state = "mine";
                one.getTransaction().commit();
                yours.state = "yours";
                other.getTransaction().commit();
                return "both";
            }
        });
        out.step("merge what is stale", () -> {
            Customer detached = factory.fromSession(s -> s.find(Customer.class, 3L));
            factory.inTransaction(s -> s.find(Customer.class, 3L).state = "newer");
            detached.state = "older";
            return factory.fromTransaction(s -> s.merge(detached).state);
        });
        change("merge what is new", s -> {
            Assigned made = new Assigned();
            made.id = UUID.nameUUIDFromBytes(new byte[] {3});
            made.name = "assigned";
            s.merge(made);
        });
        change("force a version", s -> s.find(Assigned.class, UUID.nameUUIDFromBytes(new byte[] {3}), LockModeType.PESSIMISTIC_FORCE_INCREMENT));
        change("an optimistic force", s -> s.find(Assigned.class, UUID.nameUUIDFromBytes(new byte[] {3}), LockModeType.OPTIMISTIC_FORCE_INCREMENT));
        step("versions", s -> s.createSelectionQuery("select str(id), version, state from Customer union all select name, version, null from Assigned order by 1", Object[].class).getResultList());
        step("a versioned update", s -> s.createMutationQuery("update versioned Customer set state = 'bulk' where id < 4").executeUpdate());
        change("roll back", s -> {
            s.find(Customer.class, 5L).state = "lost";
            s.flush();
            throw new IllegalStateException("as it should");
        });
        step("state after it", s -> s.find(Customer.class, 5L).state);
        out.step("savepoints", () -> factory.fromTransaction(s -> s.doReturningWork(connection -> {
            try (var statement = connection.createStatement()) {
                statement.executeUpdate("update customer set state = 'kept' where id = 5");
                var point = connection.setSavepoint("größe");
                statement.executeUpdate("update customer set state = 'lost' where id = 5");
                connection.rollback(point);
                connection.releaseSavepoint(connection.setSavepoint());
                return "done";
            }
        })));
        step("state after a savepoint", s -> s.createSelectionQuery("select state from Customer where id = 5", String.class).getSingleResult());
    }

    private void constraints() {
        change("the same address", s -> s.persist(new Customer("again", "C1@example.com")));
        change("no name", s -> s.createNativeMutationQuery("insert into customer (name, email, version, credit) values (null, 'x', 0, 0)").executeUpdate());
        change("a negative credit", s -> s.find(Customer.class, 1L).credit = new BigDecimal("-1"));
        change("a negative stock", s -> s.find(Product.class, "P101").stock = -1);
        change("a wrong level", s -> s.createNativeMutationQuery("update customer set level = 'NONE' where id = 1").executeUpdate());
        change("a wrong ordinal", s -> s.createNativeMutationQuery("update customer set ordinal = 7 where id = 1").executeUpdate());
        change("a customer that is not there", s -> s.persist(new Purchase(s.getReference(Customer.class, 999L), null)));
        change("a tag in use", s -> s.remove(s.find(Tag.class, 2)));
        change("a name that is too long", s -> s.persist(new Customer("ü".repeat(101), "long@example.com")));
        change("JSON that is none", s -> s.createNativeMutationQuery("update customer set settings = '{' where id = 1").executeUpdate());
        change("write a generated column", s -> s.createNativeMutationQuery("update customer set label = 'x' where id = 1").executeUpdate());
        change("a table that is not there", s -> s.createNativeQuery("select * from nothing", Object[].class).getResultList());
        change("a column that is not there", s -> s.createNativeQuery("select nothing from customer", Object[].class).getResultList());
    }

    private void changes() {
        for (String statement : new String[] {
            "update Customer set credit = credit * 1.1 + 1, name = concat(name, '!') where level = HIGH", "update Vehicle set name = concat('Wagen ', name), wheels = wheels + 1 where wheels > 4", "update Car set doors = doors + 1, name = upper(name) where owner.name like '%a%'",
            "update Shape set colour = 'blau' where colour = 'grün'", "update Line l set price = (select p.price * 2 from Product p where p = l.product) where l.amount > 5", "update Product set stock = case when stock > 10 then stock - 10 else stock end",
            "update Pooled p set p.score = p.score + 1 where exists (select 1 from Pooled q where q.id = p.id + 1 and q.score > 20)", "insert into Pooled (name, score) select concat('copy of ', c.name), c.version from Customer c where c.id < 6",
            "insert into Tag (name) values ('neu'), ('neuer')", "insert into Product (code, name, price, stock) values ('P100', 'other', 1, 1) on conflict (code) do update set name = excluded.name, stock = excluded.stock + 5",
            "insert into Tag (id, name) values (1, 'again') on conflict do nothing", "delete from Truck where load > 9", "delete from Vehicle where wheels = 5", "delete from Shape where id > 8", "delete from Payment where type(this) = CashPayment",
            "delete from Line l where l.product.code in (select p.code from Product p where p.stock = 0)", "delete from Pooled where score = (select max(score) from Pooled)", "update Customer c set c.contact.floor = 99 where c.id = 1",
            "delete from Forgotten where id = 1",
        }) {
            step("change: " + statement, s -> s.createMutationQuery(statement).executeUpdate());
        }
        change("soft deletes", s -> {
            for (int n = 1; n < 5; n++) s.persist(new Forgotten(n, "f" + n));
            s.flush();
            s.remove(s.find(Forgotten.class, 2));
        });
        step("what is not deleted", s -> s.createSelectionQuery("select id from Forgotten order by id", Integer.class).getResultList());
        step("delete softly", s -> s.createMutationQuery("delete from Forgotten where name > 'f2'").executeUpdate());
        step("all of it", s -> s.createNativeQuery("select id, name, gone from Forgotten order by id", Object[].class).getResultList());
        step("filtered", s -> {
            s.enableFilter("above").setParameter("least", 30);
            return s.createSelectionQuery("select count(*) from Pooled", Long.class).getSingleResult();
        });
    }

    private void locks() {
        Timeout none = Timeout.milliseconds(0);
        out.step("lock without waiting", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                other.beginTransaction();
                one.find(Product.class, "P103", LockModeType.PESSIMISTIC_WRITE);
                List<Object> found = new ArrayList<>();
                try {
                    other.find(Product.class, "P103", LockModeType.PESSIMISTIC_WRITE, none);
                    found.add("locked twice");
                } catch (RuntimeException e) {
                    found.add(Outcomes.error(e));
                }
                return found;
            }
        });
        out.step("skip what is locked", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                other.beginTransaction();
                one.createSelectionQuery("from Product where code between 'P105' and 'P107'", Product.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList();
                return other.createSelectionQuery("from Product where code between 'P104' and 'P109' order by code", Product.class).setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).getResultList().stream().map(p -> p.code).toList();
            }
        });
        out.step("share", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                other.beginTransaction();
                one.find(Product.class, "P103", LockModeType.PESSIMISTIC_READ);
                other.find(Product.class, "P103", LockModeType.PESSIMISTIC_READ);
                return "both";
            }
        });
        out.step("wait a second", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                one.find(Product.class, "P103", LockModeType.PESSIMISTIC_WRITE);
                other.beginTransaction();
                other.createNativeMutationQuery("set session innodb_lock_wait_timeout = 1").executeUpdate();
                try {
                    return other.find(Product.class, "P103", LockModeType.PESSIMISTIC_WRITE).code;
                } finally {
                    other.getTransaction().rollback();
                    other.createNativeQuery("select 1", Integer.class).getSingleResult();
                }
            }
        });
        step("lock joined tables", s -> s.createSelectionQuery("select c from Customer c join fetch c.purchases where c.id < 5 order by c.id", Customer.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList().size());
        step("lock a page", s -> s.createSelectionQuery("from Product order by code desc", Product.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).setFirstResult(3).setMaxResults(4).getResultList().stream().map(p -> p.code).toList());
        step("lock a joined class", s -> s.createSelectionQuery("from Vehicle order by id", Vehicle.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList().stream().map(v -> v.name).toList());
        change("refresh", s -> {
            Product p = s.find(Product.class, "P110");
            s.lock(p, LockModeType.PESSIMISTIC_WRITE);
            s.refresh(p);
        });
    }

    private void audit() {
        change("write an article", s -> {
            for (int n = 0; n < 3; n++) {
                Article made = new Article();
                made.title = "Titel " + n;
                made.body = "größe 😀 ".repeat(50 * n);
                s.persist(made);
            }
        });
        change("change an article", s -> s.find(Article.class, 1).title = "geändert");
        change("change it again", s -> s.find(Article.class, 1).hits += 5);
        change("remove an article", s -> s.remove(s.find(Article.class, 2)));
        step("revisions", s -> {
            var reader = AuditReaderFactory.get(s);
            List<Object> found = new ArrayList<>();
            for (Number revision : reader.getRevisions(Article.class, 1)) {
                Article then = reader.find(Article.class, 1, revision);
                found.add(List.of(revision, then.title, then.hits));
            }
            return found;
        });
        step("deleted revisions", s -> AuditReaderFactory.get(s).createQuery().forRevisionsOfEntity(Article.class, false, true).getResultList().size());
        step("at a revision", s -> AuditReaderFactory.get(s).createQuery().forEntitiesAtRevision(Article.class, 2).addOrder(org.hibernate.envers.query.AuditEntity.id().desc()).getResultList().size());
    }

    private void stateless() {
        out.step("stateless", () -> factory.fromStatelessTransaction(s -> {
            Assigned made = new Assigned();
            made.id = UUID.nameUUIDFromBytes(new byte[] {9});
            made.name = "first";
            s.upsert(made);
            Product product = new Product("P300", "stateless", "3", 3);
            s.insert(product);
            product.stock = 4;
            s.update(product);
            s.upsert(new Product("P300", "upserted", "4", 5));
            s.upsert(new Product("P301", "upserted", "4", 5));
            s.delete(s.get(Product.class, "P120"));
            s.insertMultiple(List.of(new Product("P400", "a", "1", 1), new Product("P401", "b", "2", 2)));
            return s.createSelectionQuery("select code, name, stock from Product where code >= 'P128' order by code", Object[].class).getResultList();
        }));
        out.step("scroll", () -> factory.fromSession(s -> {
            try (var rows = s.createSelectionQuery("select code from Product order by code", String.class).setFetchSize(Integer.MIN_VALUE).scroll(ScrollMode.FORWARD_ONLY)) {
                int count = 0;
                while (rows.next()) count++;
                return count;
            }
        }));
    }
}
