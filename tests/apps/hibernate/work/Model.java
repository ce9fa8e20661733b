package work;

import jakarta.persistence.*;
import jakarta.persistence.CascadeType;
import jakarta.persistence.Temporal;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.*;
import java.util.*;
import org.hibernate.annotations.*;
import org.hibernate.envers.Audited;
import org.hibernate.type.SqlTypes;

/** The entities: all kinds of inheritance, keys, collections, values and constraints. */
class Model {
    static final Class<?>[] CLASSES = {
        Customer.class, Profile.class, Tag.class, Category.class, Purchase.class, Line.class, Product.class, Vehicle.class, Car.class, Truck.class, Payment.class, CardPayment.class, CashPayment.class,
        Shape.class, Circle.class, Square.class, Everything.class, Article.class, Forgotten.class, Assigned.class, Pooled.class,
    };

    enum Level { LOW, MIDDLE, HIGH }

    @Embeddable
    static class Address {
        String street;
        @Column(length = 10) String zip;
        String city;

        Address() {}

        Address(String street, String zip, String city) {
            this.street = street;
            this.zip = zip;
            this.city = city;
        }
    }

    /** A document with members that queries name. */
    @Embeddable
    static class Contact {
        String phone;
        Integer floor;
        BigDecimal share;

        Contact() {}

        Contact(String phone, Integer floor, BigDecimal share) {
            this.phone = phone;
            this.floor = floor;
            this.share = share;
        }
    }

    @Entity(name = "Customer")
    @Table(name = "customer", uniqueConstraints = @UniqueConstraint(name = "uq_customer_email", columnNames = "email"),
           indexes = {@Index(name = "ix_customer_name", columnList = "name, level desc"), @Index(name = "ix_customer_city", columnList = "home_city")},
           check = @CheckConstraint(name = "ck_customer_credit", constraint = "credit >= 0"))
    static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Version int version;
        @Column(nullable = false, length = 100) String name;
        @NaturalId @Column(length = 120) String email;
        @Enumerated(EnumType.STRING) Level level = Level.LOW;
        @Enumerated Level ordinal = Level.MIDDLE;
        @Column(precision = 19, scale = 4) BigDecimal credit = BigDecimal.ZERO;
        LocalDate born;
        @ColumnDefault("'new'") @Column(length = 20) String state = "new";
        @Embedded
        @AttributeOverrides({@AttributeOverride(name = "street", column = @Column(name = "home_street")), @AttributeOverride(name = "zip", column = @Column(name = "home_zip", length = 10)),
                             @AttributeOverride(name = "city", column = @Column(name = "home_city"))})
        Address home;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> settings;
        @JdbcTypeCode(SqlTypes.JSON) Contact contact;
        @JdbcTypeCode(SqlTypes.JSON) List<String> numbers;
        @Formula("CHAR_LENGTH(name)") int nameLength;
        @GeneratedColumn("CONCAT(name, ' <', email, '>')") String label;
        @ElementCollection @CollectionTable(name = "customer_nick") @Column(name = "nick") Set<String> nicks = new TreeSet<>();
        @ElementCollection @MapKeyColumn(name = "k", length = 50) @Column(name = "v") Map<String, String> attributes = new TreeMap<>();
        @ElementCollection @OrderColumn(name = "n") List<Address> addresses = new ArrayList<>();
        @ManyToMany @OrderBy("name") Set<Tag> tags = new LinkedHashSet<>();
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("id") List<Purchase> purchases = new ArrayList<>();
        @OneToOne(mappedBy = "customer", cascade = CascadeType.ALL) Profile profile;

        Customer() {}

        Customer(String name, String email) {
            this.name = name;
            this.email = email;
        }
    }

    @Entity(name = "Profile")
    static class Profile {
        @Id Long id;
        @MapsId @OneToOne @OnDelete(action = OnDeleteAction.CASCADE) Customer customer;
        @Lob String text;
        @Lob byte[] picture;
    }

    @Entity(name = "Tag")
    static class Tag {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        @Column(unique = true, nullable = false) String name;

        Tag() {}

        Tag(String name) { this.name = name; }
    }

    @Entity(name = "Category")
    static class Category {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        String name;
        @ManyToOne(fetch = FetchType.LAZY) @JoinColumn(foreignKey = @ForeignKey(name = "fk_category_parent")) @OnDelete(action = OnDeleteAction.SET_NULL) Category parent;
        @OneToMany(mappedBy = "parent") List<Category> children = new ArrayList<>();

        Category() {}

        Category(String name, Category parent) {
            this.name = name;
            this.parent = parent;
        }
    }

    @Entity(name = "Product")
    static class Product {
        @Id @Column(length = 20) String code;
        String name;
        @Column(precision = 10, scale = 2) BigDecimal price;
        @Check(constraints = "stock >= 0") int stock;

        Product() {}

        Product(String code, String name, String price, int stock) {
            this.code = code;
            this.name = name;
            this.price = new BigDecimal(price);
            this.stock = stock;
        }
    }

    @Entity(name = "Purchase")
    @Table(name = "`order`")
    static class Purchase {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) Customer customer;
        LocalDateTime placed;
        @OneToMany(mappedBy = "purchase", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("id.number") List<Line> lines = new ArrayList<>();

        Purchase() {}

        Purchase(Customer customer, LocalDateTime placed) {
            this.customer = customer;
            this.placed = placed;
        }
    }

    @Embeddable
    static class LineId implements Serializable {
        Long orderId;
        @Column(name = "`number`") Integer number;

        LineId() {}

        LineId(Integer number) { this.number = number; }

        @Override public boolean equals(Object other) { return other instanceof LineId o && Objects.equals(o.orderId, orderId) && Objects.equals(o.number, number); }

        @Override public int hashCode() { return Objects.hash(orderId, number); }
    }

    @Entity(name = "Line")
    static class Line {
        @EmbeddedId LineId id;
        @MapsId("orderId") @ManyToOne(fetch = FetchType.LAZY) Purchase purchase;
        @ManyToOne(fetch = FetchType.LAZY) Product product;
        int amount;
        @Column(precision = 10, scale = 2) BigDecimal price;

        Line() {}

        Line(Purchase purchase, int number, Product product, int amount) {
            this.id = new LineId(number);
            this.purchase = purchase;
            this.product = product;
            this.amount = amount;
            this.price = product.price;
        }
    }

    /** One table for each class, joined. */
    @Entity(name = "Vehicle") @Inheritance(strategy = InheritanceType.JOINED)
    static class Vehicle {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        String name;
        int wheels;
    }

    @Entity(name = "Car")
    static class Car extends Vehicle {
        int doors;
        @ManyToOne Customer owner;
    }

    @Entity(name = "Truck")
    static class Truck extends Vehicle {
        double load;
    }

    /** One table for all classes. */
    @Entity(name = "Payment") @DiscriminatorColumn(name = "kind", length = 10)
    static class Payment {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        BigDecimal amount;
    }

    @Entity(name = "CardPayment") @DiscriminatorValue("card")
    static class CardPayment extends Payment {
        @Column(length = 16) String card;
    }

    @Entity(name = "CashPayment") @DiscriminatorValue("cash")
    static class CashPayment extends Payment {
        String currency;
    }

    /** A whole table for each class, with keys from one table of sequences. */
    @Entity(name = "Shape") @Inheritance(strategy = InheritanceType.TABLE_PER_CLASS)
    abstract static class Shape {
        @Id @GeneratedValue(strategy = GenerationType.TABLE, generator = "shapes") @TableGenerator(name = "shapes", table = "generators", pkColumnName = "name", valueColumnName = "next", allocationSize = 5) Long id;
        String colour;
    }

    @Entity(name = "Circle")
    static class Circle extends Shape {
        double radius;
    }

    @Entity(name = "Square")
    static class Square extends Shape {
        float side;
    }

    /** A column of each type. */
    @Entity(name = "Everything")
    static class Everything {
        @Id int id;
        boolean truth;
        Boolean maybe;
        byte tiny;
        short small;
        int middle;
        long big;
        float single;
        double twice;
        char letter;
        String text;
        @Column(length = 70000) String longText;
        @Column(length = 20000000) String longest;
        @Nationalized String national;
        @JdbcTypeCode(SqlTypes.CHAR) @Column(length = 5) String fixed;
        BigDecimal decimal;
        @Column(precision = 38, scale = 10) BigDecimal precise;
        BigInteger integer;
        LocalDate date;
        LocalTime time;
        LocalDateTime dateTime;
        Instant instant;
        @Column(secondPrecision = 0) LocalDateTime seconds;
        OffsetDateTime offset;
        @TimeZoneStorage(TimeZoneStorageType.COLUMN) OffsetDateTime offsetColumn;
        Duration duration;
        Year year;
        ZoneId zone;
        UUID uuid;
        @JdbcTypeCode(SqlTypes.CHAR) UUID uuidText;
        byte[] bytes;
        @Column(length = 16) byte[] shortBytes;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> document;
        int[] integers;
        List<String> texts;
        @Enumerated(EnumType.STRING) Level level;
        @Enumerated(EnumType.ORDINAL) Level ordinal;
        @Convert(converter = Upper.class) String converted;
        @Temporal(TemporalType.TIMESTAMP) Date old;
        Currency currency;
        Locale locale;
    }

    @Converter
    static class Upper implements AttributeConverter<String, String> {
        @Override public String convertToDatabaseColumn(String value) { return value == null ? null : value.toUpperCase(Locale.ROOT); }

        @Override public String convertToEntityAttribute(String value) { return value == null ? null : value.toLowerCase(Locale.ROOT); }
    }

    @Entity(name = "Article") @Audited @DynamicUpdate @OptimisticLocking(type = OptimisticLockType.DIRTY)
    static class Article {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        String title;
        @Column(length = 5000) String body;
        int hits;
    }

    @Entity(name = "Forgotten") @SoftDelete(columnName = "gone")
    static class Forgotten {
        @Id Integer id;
        String name;

        Forgotten() {}

        Forgotten(Integer id, String name) {
            this.id = id;
            this.name = name;
        }
    }

    @Entity(name = "Assigned")
    static class Assigned {
        @Id UUID id;
        @Version Integer version;
        String name;
    }

    @Entity(name = "Pooled") @FilterDef(name = "above", parameters = @ParamDef(name = "least", type = Integer.class)) @Filter(name = "above", condition = "score >= :least")
    static class Pooled {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "pooled") @SequenceGenerator(name = "pooled", sequenceName = "pooled_sequence", initialValue = 100, allocationSize = 20) Long id;
        String name;
        int score;
    }
}

/** A later version of some entities, for a schema that is updated. */
class Later {
    static final Class<?>[] CLASSES = {Tag.class, Product.class, Supplier.class};

    @Entity(name = "Tag")
    @Table(name = "Tag", indexes = @Index(name = "ix_tag_colour", columnList = "colour, name"))
    static class Tag {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        @Column(unique = true, nullable = false) String name;
        @Column(length = 30) String colour;
        @ColumnDefault("7") int weight;
    }

    @Entity(name = "Product")
    @Table(name = "Product", uniqueConstraints = @UniqueConstraint(name = "uq_product_name", columnNames = {"name", "code"}))
    static class Product {
        @Id @Column(length = 20) String code;
        String name;
        @Column(precision = 10, scale = 2) BigDecimal price;
        int stock;
        @ManyToOne Supplier supplier;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> details;
        Model.Level level;
    }

    @Entity(name = "Supplier")
    static class Supplier {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false) String name;
        @CreationTimestamp Instant since;
    }
}
