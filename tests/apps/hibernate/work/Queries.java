package work;

import jakarta.persistence.criteria.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.SessionFactory;
import org.hibernate.query.*;
import org.hibernate.query.Order;
import org.hibernate.query.criteria.HibernateCriteriaBuilder;
import work.Model.*;

/** Queries in HQL, by criteria and by pages. */
class Queries {
    private static final String[] HQL = {
        // Conditions and functions.
        "select id, name from Customer where name like '%a%' order by id", "select id from Customer where name like '%!_%' escape '!' or name like '%\\\\%' order by id", "select id from Customer where lower(name) = 'strasse' order by id",
        "select id from Customer where name ilike '%MÜLLER%'", "select id from Customer where home.city = 'ZÜRICH' and credit between 100 and 900 order by id", "select id from Customer where home is null order by id",
        "select id, level, ordinal from Customer where level in (LOW, HIGH) and ordinal is not null order by level, id", "select id, born, year(born), month(born), extract(week from born), extract(quarter from born), extract(day of week from born) from Customer order by id",
        "select id, born + 40 day, born - 3 month, (local_date - local_date) by day from Customer order by id", "select placed, placed + 90 minute, extract(hour from placed), truncate(placed, month), format(placed as 'yyyy-MM-dd HH:mm') from Purchase order by id",
        "select (p.placed - q.placed) by hour from Purchase p, Purchase q where p.id = 9 and q.id = 2", "select id, upper(name), length(name), substring(name, 2, 3), position('a' in name), trim(both from name), replace(name, 'a', 'ä'), left(name, 2), right(name, 2), lpad(cast(id as String), 5, '0'), repeat('x', id) from Customer order by id",
        "select id, coalesce(ordinal, 0), nullif(state, 'new'), case level when LOW then 'l' when HIGH then 'h' else '?' end from Customer order by id", "select id, credit, round(credit, 1), floor(credit), ceiling(credit), abs(-credit), sign(credit), mod(id, 5), power(id, 2), sqrt(id), ln(id), exp(1) from Customer order by id",
        "select cast(credit as Integer), cast(credit as String), cast(id as Double), cast('12.5' as BigDecimal), cast(born as String), cast('2024-02-29' as LocalDate) from Customer where id < 4 order by id",
        "select greatest(id, 3), least(id, 3), pi, hex(cast('ab' as Binary)) from Customer where id < 4 order by id", "select overlay(name placing 'XX' from 2 for 1), ascii(name), locate('e', name, 2), concat(name, '-', id), name || '!' from Customer order by id",
        "select id from Customer where name like regexp '^[A-Z]+$' order by id", "select id from Customer where (name, state) in (('100%', 'new'), ('STRASSE', 'new')) order by id", "select id from Customer where id in (select max(p.customer.id) from Purchase p)",
        // Groups.
        "select level, count(*), sum(credit), avg(credit), min(name), max(born), count(distinct home.city) from Customer group by level order by level", "select home.city, level, count(*) from Customer group by rollup(home.city, level) order by home.city, level",
        "select customer.id, count(*) from Purchase group by customer.id having count(*) > 1 order by count(*) desc, customer.id", "select sum(l.amount * l.price), every(l.amount > 0), any(l.amount > 12) from Line l", "select l.product.name, sum(l.amount) filter (where l.price > 10) from Line l group by l.product.name order by 1",
        "select listagg(t.name, ',') within group (order by t.name desc) from Tag t", "select level, listagg(distinct state, '; ') from Customer group by level order by level", "select stddev_pop(score), stddev_samp(score), var_pop(score), var_samp(score) from Pooled",
        "select count(*), count(ordinal), sum(cast(null as Integer)) from Customer where 1 = 0", "select extract(month from placed), count(*) from Purchase group by extract(month from placed) order by 1",
        // Joins and subqueries.
        "select c.name, p.id, l.id.number, l.product.name from Customer c join c.purchases p join p.lines l where l.amount > 4 order by p.id, l.id.number", "select c.id, p.id from Customer c left join c.purchases p on p.placed > datetime 2024-04-01 00:00 order by c.id, p.id",
        "select c.id, size(c.tags), size(c.purchases) from Customer c order by c.id", "select c.id from Customer c where c.tags is empty order by c.id", "select c.id from Customer c where 'nick3' member of c.nicks", "select c.id, index(a), a.street from Customer c join c.addresses a where index(a) = 2 order by c.id",
        "select c.id, key(a), value(a) from Customer c join c.attributes a where key(a) = 'farbe' order by c.id", "select c.id from Customer c where c.attributes['farbe'] = 'f3'", "select c.id from Customer c where maxindex(c.addresses) > 2", "select c.id from Customer c where exists (select 1 from c.purchases p where size(p.lines) > 2) order by c.id",
        "select c.id from Customer c where c.credit >= all (select d.credit from Customer d where d.level = LOW) order by c.id", "select c.id from Customer c where c.id > any (select p.customer.id from Purchase p) order by c.id", "select c.id, (select count(*) from Purchase p where p.customer = c), (select max(l.price) from Line l where l.purchase.customer = c) from Customer c order by c.id",
        "select c.id, x.n from Customer c join lateral (select count(*) as n from Purchase p where p.customer = c) x order by c.id", "select c.id, x.placed from Customer c left join lateral (select p.placed as placed from Purchase p where p.customer = c order by p.placed desc limit 1) x order by c.id", "select x.city, x.n from (select c.home.city as city, count(*) as n from Customer c group by c.home.city) x order by x.n desc, x.city",
        "select c, p from Customer c cross join Product p where p.code = 'P100' and c.id < 3 order by c.id", "select a.id, b.id from Category a join Category b on b.parent = a order by a.id, b.id", "select distinct t.name from Customer c join c.tags t where c.level = LOW order by t.name",
        // Classes.
        "select v.id, v.name, type(v) from Vehicle v order by v.id", "select v.id, treat(v as Car).doors from Vehicle v where treat(v as Car).doors > 2 order by v.id", "select v.id from Vehicle v where type(v) in (Truck)", "select p.id, p.amount, type(p) from Payment p where p.amount > 2 and type(p) <> CashPayment order by p.id", "select s.id, s.colour, type(s) from Shape s order by s.id",
        "select sum(treat(s as Circle).radius), sum(treat(s as Square).side) from Shape s", "select c.owner.name, c.doors from Car c where c.owner.home.city = 'Köln' order by c.id",
        // Windows.
        "select id, row_number() over (order by credit desc), rank() over (order by level), dense_rank() over (order by level), sum(credit) over (partition by level order by id rows between 1 preceding and current row) from Customer order by id", "select id, lag(name) over (order by id), lead(id, 2, -1) over (order by id), first_value(name) over (order by id), ntile(4) over (order by id), percent_rank() over (order by score), cume_dist() over (order by score) from Pooled where score > 30 order by id",
        "select id, count(*) over (), max(score) over (partition by mod(id, 3)), sum(score) over (order by score range between 2 preceding and 2 following) from Pooled where id < 120 order by id", "select id, nth_value(name, 2) over (order by id rows between unbounded preceding and unbounded following), last_value(name) over (order by id rows between current row and 1 following) from Tag order by id",
        // Sets and common table expressions.
        "select x.n from (select name as n from Tag union select name as n from Category) x order by x.n", "select x.n, count(*) from (select name as n from Tag union all select name as n from Tag) x group by x.n order by x.n limit 4", "(select name from Product limit 20) intersect select name from Product where stock > 10 order by 1", "select code from Product except select l.product.code from Line l order by 1",
        "with x as (select c.id as id, c.level as level from Customer c where c.credit > 200) select x.level, count(*) from x x group by x.level order by x.level", "with tree as (select c.id as id, c.name as name, 0 as depth from Category c where c.parent is null union all select k.id, k.name, t.depth + 1 from tree t join Category k on k.parent.id = t.id) select t.id, t.name, t.depth from tree t order by t.depth, t.id",
        "with n as (select 1 as i union all select n.i + 1 from n n where n.i < 20) select sum(n.i), count(*) from n n",
        // Documents.
        "select id, json_value(settings, '$.theme'), json_value(settings, '$.size' returning Integer) from Customer order by id", "select id from Customer where json_value(settings, '$.nested.b') = 'true' order by id", "select id from Customer where json_exists(settings, '$.nested.a') order by id", "select id, json_query(settings, '$.list') from Customer order by id", "select id, c.contact.phone, c.contact.floor from Customer c where c.contact.floor > 3 order by c.contact.share desc",
        "select json_object('id': id, 'name': name, 'none': null) from Customer where id < 4 order by id", "select json_array(id, name, credit) from Customer where id < 4 order by id", "select json_arrayagg(t.name) from Tag t where t.id = 3", "select json_objectagg(t.name: t.id) from Tag t", "select json_set(settings, '$.size', 1), json_remove(settings, '$.list'), json_mergepatch(settings, '{\"size\":null}') from Customer where id < 4 order by id",
        // Pages.
        "select name from Product order by price desc, code limit 5 offset 3", "select name from Product order by code fetch first 2 rows only", "select distinct name from Product order by name desc limit 3", "from Product p order by collate(p.name as utf8mb4_bin), p.code limit 3", "select p.code from Product p order by p.stock desc nulls last, p.code asc limit 4", "select c.id, c.ordinal from Customer c order by c.ordinal asc nulls last, c.id",
    };

    private final SessionFactory factory;
    private final Outcomes out;

    Queries(SessionFactory factory, Outcomes out) {
        this.factory = factory;
        this.out = out;
    }

    void run() {
        for (String query : HQL) out.step("query: " + query, () -> factory.fromSession(s -> s.createSelectionQuery(query, Object[].class).getResultList().stream().map(Queries::brief).toList()));
        fetches();
        criteria();
        pages();
    }

    /** Entities by their keys. */
    private static Object brief(Object[] row) {
        return Arrays.stream(row).map(v -> v instanceof Customer c ? "customer " + c.id : v instanceof Product p ? "product " + p.code : v instanceof Class<?> c ? c.getSimpleName() : v).toList();
    }

    private void fetches() {
        out.step("fetch joins", () -> factory.fromSession(s -> s.createSelectionQuery("select distinct c from Customer c left join fetch c.purchases p left join fetch c.profile where c.level = LOW order by c.id", Customer.class).getResultList().stream().map(c -> List.of(c.id, c.purchases.size(), c.profile.picture.length)).toList()));
        out.step("batches of collections", () -> factory.fromSession(s -> s.createSelectionQuery("from Customer order by id", Customer.class).getResultList().stream().map(c -> List.of(c.id, c.nicks.size(), c.addresses.size(), c.purchases.stream().mapToInt(p -> p.lines.size()).sum())).toList()));
        out.step("an entity graph", () -> factory.fromSession(s -> {
            var graph = s.createEntityGraph(Purchase.class);
            graph.addSubgraph("customer").addAttributeNodes("tags");
            graph.addAttributeNodes("lines");
            return s.createSelectionQuery("from Purchase order by id", Purchase.class).setEntityGraph(graph, org.hibernate.graph.GraphSemantic.FETCH).getResultList().stream().map(p -> List.of(p.id, p.customer.tags.size(), p.lines.size())).toList();
        }));
        out.step("parameters", () -> factory.fromSession(s -> s.createSelectionQuery("select id from Customer where name in :names and credit > :least and born > :after and level <> :level order by id", Long.class)
            .setParameterList("names", Steps.NAMES).setParameter("least", new BigDecimal("1.5")).setParameter("after", LocalDate.of(1960, 1, 1)).setParameter("level", Model.Level.LOW).getResultList()));
        out.step("a native query", () -> factory.fromSession(s -> s.createNativeQuery("select {p.*}, (select sum(l.amount) from Line l where l.product_code = p.code) as n from Product p where p.name like :name order by p.code", Object[].class)
            .addEntity("p", Product.class).addScalar("n", Long.class).setParameter("name", "%3%").getResultList().stream().map(r -> Arrays.asList(((Product) r[0]).code, r[1])).toList()));
        out.step("native JSON", () -> factory.fromSession(s -> s.createNativeQuery("select id, settings->>'$.theme', json_length(numbers) from customer where 'größe' member of (numbers) order by id", Object[].class).getResultList()));
    }

    private void criteria() {
        out.step("criteria", () -> factory.fromSession(s -> {
            HibernateCriteriaBuilder builder = s.getCriteriaBuilder();
            CriteriaQuery<Object[]> query = builder.createQuery(Object[].class);
            Root<Customer> root = query.from(Customer.class);
            Join<Customer, Purchase> purchases = root.join("purchases", JoinType.LEFT);
            query.multiselect(root.get("name"), builder.count(purchases), builder.greatest(purchases.<LocalDateTime>get("placed")))
                .where(builder.or(builder.like(root.get("name"), "%a%"), builder.greaterThan(root.get("credit"), new BigDecimal("300")), builder.isNull(root.get("ordinal"))))
                .groupBy(root.get("id"), root.get("name")).having(builder.ge(builder.count(purchases), 1L)).orderBy(builder.desc(builder.count(purchases)), builder.asc(root.get("name")));
            return s.createSelectionQuery(query).getResultList();
        }));
        out.step("criteria with a subquery", () -> factory.fromSession(s -> {
            HibernateCriteriaBuilder builder = s.getCriteriaBuilder();
            CriteriaQuery<String> query = builder.createQuery(String.class);
            Root<Product> root = query.from(Product.class);
            Subquery<BigDecimal> average = query.subquery(BigDecimal.class);
            Root<Product> other = average.from(Product.class);
            average.select(builder.avg(other.get("price")).as(BigDecimal.class)).where(builder.equal(other.get("name"), root.get("name")));
            query.select(root.get("code")).where(builder.gt(root.<BigDecimal>get("price"), average)).orderBy(builder.asc(root.get("code")));
            return s.createSelectionQuery(query).getResultList();
        }));
        out.step("criteria that update", () -> factory.fromTransaction(s -> {
            HibernateCriteriaBuilder builder = s.getCriteriaBuilder();
            CriteriaUpdate<Product> update = builder.createCriteriaUpdate(Product.class);
            Root<Product> root = update.from(Product.class);
            update.set(root.<Integer>get("stock"), builder.sum(root.<Integer>get("stock"), 1)).where(builder.like(root.get("name"), "%3"));
            CriteriaDelete<Pooled> delete = builder.createCriteriaDelete(Pooled.class);
            delete.where(builder.lt(delete.from(Pooled.class).get("score"), 2));
            return List.of(s.createMutationQuery(update).executeUpdate(), s.createMutationQuery(delete).executeUpdate());
        }));
    }

    private void pages() {
        out.step("pages", () -> factory.fromSession(s -> {
            List<Object> found = new ArrayList<>();
            for (int page = 0; page < 4; page++) found.add(s.createSelectionQuery("select code from Product order by name, code", String.class).setPage(Page.page(9, page)).getResultList());
            return found;
        }));
        out.step("pages by keys", () -> factory.fromSession(s -> {
            List<Object> found = new ArrayList<>();
            var page = Page.first(8).keyedBy(List.of(Order.desc(Product.class, "price"), Order.asc(Product.class, "code")));
            for (int n = 0; n < 5 && page != null; n++) {
                KeyedResultList<Product> result = s.createSelectionQuery("from Product", Product.class).getKeyedResultList(page);
                found.add(result.getResultList().stream().map(p -> p.code).toList());
                page = result.isLastPage() ? null : result.getNextPage();
            }
            return found;
        }));
        out.step("a count of results", () -> factory.fromSession(s -> s.createSelectionQuery("select distinct c from Customer c join c.purchases p where p.placed is not null", Customer.class).getResultCount()));
        out.step("a page of joined fetches", () -> factory.fromSession(s -> s.createSelectionQuery("select p from Purchase p left join fetch p.lines order by p.id", Purchase.class).setFirstResult(2).setMaxResults(3).getResultList().stream().map(p -> List.of(p.id, p.lines.size())).toList()));
    }
}
