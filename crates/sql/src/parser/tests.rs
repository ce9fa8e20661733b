use super::*;
use crate::ast::*;

fn p(text: &str) -> Statement {
    parse(text.as_bytes(), LexMode::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn select(text: &str) -> Select {
    match p(text) {
        Statement::Query(query) => match query.body {
            QueryBody::Select(select) => *select,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn expr(text: &str) -> Expr {
    match select(&format!("select {text}")).items.remove(0) {
        SelectItem::Expr { expr, .. } => expr,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> String {
    parse(text.as_bytes(), LexMode::default())
        .expect_err(text)
        .message
        .to_string()
}

fn parameterised(text: &str) -> (Digested, Parsed) {
    let mut digested = Digested::new();
    digested.read(text.as_bytes(), LexMode::default());
    let parsed = parse_parameterised(text.as_bytes(), &digested, true)
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    (digested, parsed)
}

#[test]
fn chains_are_flat_and_parentheses_are_dropped() {
    assert!(matches!(expr("1 and 2 and (3) and 4"), Expr::And(m) if m.len() == 4));
    assert!(matches!(expr("1 or 2 and 3 or 4"), Expr::Or(m) if m.len() == 3));
    assert_eq!(expr("((1))"), expr("1"));
}

/// A session's coroutine has a stack of 1 MiB, of which the parser may use only a part.
#[test]
fn deep_texts_parse_or_fail_clearly() {
    let small = std::thread::Builder::new()
        .stack_size(896 << 10)
        .spawn(deep_texts)
        .expect("a thread");
    small.join().expect("no panic on the small stack");
}

fn deep_texts() {
    let deep = |n: usize, open: &str, inner: &str, close: &str| {
        let text = format!("select {}{}{}", open.repeat(n), inner, close.repeat(n));
        parse(text.as_bytes(), LexMode::default())
    };
    assert!(deep(5_000, "(", "1", ")").is_ok());
    assert!(deep(100_000, "(", "1", ")").is_ok());
    assert!(deep(150, "abs(", "1", ")").is_ok());
    assert!(deep(250, "1+", "1", "").is_ok());
    for (open, close) in [
        ("abs(", ")"),
        ("- ", ""),
        ("not ", ""),
        ("1+(", ")"),
        ("! ", ""),
        ("case when ", " then 1 end"),
    ] {
        let e = deep(5_000, open, "1", close).expect_err("too deep");
        assert_eq!(e.errno(), 1436, "{open}");
    }
    assert_eq!(
        deep(5_000, "1+", "1", "").expect_err("too deep").errno(),
        1436
    );
    assert_eq!(
        deep(64, "(select ", "1", ")")
            .expect_err("too deep")
            .errno(),
        1436
    );
    assert!(deep(40, "(select ", "1", ")").is_ok());
    assert!(deep(50_000, "1 and ", "1", "").is_ok());
    for (open, close) in [
        ("(select 1 from t where a in (select ", "))"),
        ("(select 1 from (select ", ") as x)"),
        ("a in (", ")"),
        ("cast(", " as char)"),
        ("if(1,", ",2)"),
        ("a between 1 and (case a when ", " then 2 end)"),
        ("exists (select * from a join (select ", ") as x on 1)"),
    ] {
        let e = deep(5_000, open, "1", close).expect_err("too deep");
        assert!(matches!(e.errno(), 1436 | 1473), "{open}: {e}");
    }
    let tables = format!("select 1 from {}t{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(
        parse(tables.as_bytes(), LexMode::default())
            .expect_err("too deep")
            .errno(),
        1436
    );
}

#[test]
fn parenthesized_subqueries_and_expressions_differ() {
    assert!(matches!(expr("((select 1) + 1)"), Expr::Binary { .. }));
    assert!(matches!(expr("((select 1))"), Expr::Subquery(_)));
    assert!(matches!(
        expr("((select 1) union (select 2))"),
        Expr::Subquery(_)
    ));
    assert!(matches!(
        expr("((select 1), 2) = (1, 2)"),
        Expr::Binary { .. }
    ));
    assert!(matches!(expr("1 in ((select 1))"), Expr::InSubquery { .. }));
    assert!(
        matches!(expr("1 in ((select 1), 2)"), Expr::InList { list: InList::Exprs(l), .. } if l.len() == 2)
    );
    assert!(
        matches!(p("(select 1) union (select 2) limit 1"), Statement::Query(q) if q.limit.is_some())
    );
}

#[test]
fn joins_nest_by_their_conditions() {
    let from = |text: &str| select(&format!("select 1 from {text}")).from.remove(0);
    let TableRef::Join(join) = from("a left join b join c on 1 on 2") else {
        panic!("no join")
    };
    assert!(matches!(
        (&join.left, &join.right),
        (TableRef::Table(_), TableRef::Join(_))
    ));
    let TableRef::Join(join) = from("a join b join c on 1") else {
        panic!("no join")
    };
    assert!(matches!(
        (&join.left, &join.right),
        (TableRef::Join(_), TableRef::Table(_))
    ));
    assert!(matches!(join.constraint, JoinConstraint::On(_)));
    assert!(matches!(from("(select 1) as x"), TableRef::Derived { .. }));
    assert!(matches!(
        from("((select 1) as x join y)"),
        TableRef::Join(_)
    ));
    assert!(error("select 1 from a left join b").contains("near ''"));
}

#[test]
fn errors_name_the_offending_token() {
    assert_eq!(
        error("selec 1"),
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right \
         syntax to use near 'selec 1' at line 1"
    );
    assert!(error("select 1 from\n where 2").ends_with("near 'where 2' at line 2"));
    assert!(error("\n\nselect 1 +").ends_with("near '' at line 1"));
    assert!(error("select 'abc").ends_with("near ''abc' at line 1"));
    assert!(error("select 1 select").ends_with("near 'select' at line 1"));
    assert_eq!(error("  "), "Query was empty");
    assert_eq!(error(" ; "), "Query was empty");
    assert_eq!(p("/* nothing */ ;"), Statement::Empty);
    let long = format!("select from {}", "ä".repeat(200));
    assert!(error(&long).ends_with(&format!("near 'from {}' at line 1", "ä".repeat(75))));
}

#[test]
fn literals_become_parameters_unless_they_shape_the_plan() {
    let text = "select a, 1, b + 2 from t where c = 3 and d in (4, 5) and e like 'x%' group by f + 6 order by 7 limit 8";
    let (digested, parsed) = parameterised(text);
    let roles: Vec<bool> = parsed
        .roles
        .iter()
        .map(|r| *r == LiteralRole::Parameter)
        .collect();
    assert_eq!(roles, [false, false, true, true, false, false, false, true]);
    assert_eq!(digested.slots().len(), 8);
    assert_eq!(
        parsed.named_by_text as usize,
        text.find(" from").expect("from")
    );
    // The first operand of a set operation names the columns, and a subquery names none.
    for text in [
        "select a, b + 2 from t union select 7 + 8, 9 intersect (select 1, 2)",
        "select a, b + 2 from t where c in (select 5 + d from t)",
    ] {
        let (_, parsed) = parameterised(text);
        assert_eq!(
            parsed.named_by_text as usize,
            "select a, b + 2".len(),
            "{text}"
        );
    }
    let Statement::Query(query) = parsed.statement else {
        panic!("no query")
    };
    let QueryBody::Select(select) = query.body else {
        panic!("no select")
    };
    let Some(Expr::And(members)) = select.selection else {
        panic!("no and")
    };
    assert!(matches!(
        &members[1],
        Expr::InList {
            list: InList::ListParam(3),
            ..
        }
    ));
    assert_eq!(query.limit.map(|l| l.count), Some(Expr::Param(7)));
}

#[test]
fn markers_and_literals_share_the_slots() {
    let (_, parsed) = parameterised("update t set a = ?, b = 2 where c in (?, 3) and d in (4, 5)");
    let Statement::Update(update) = parsed.statement else {
        panic!("no update")
    };
    assert_eq!(update.assignments[0].value, Expr::Param(0));
    assert_eq!(update.assignments[1].value, Expr::Param(1));
    let Some(Expr::And(members)) = update.selection else {
        panic!("no and")
    };
    assert!(
        matches!(&members[0], Expr::InList { list: InList::Exprs(l), .. } if *l == [Expr::Param(2), Expr::Param(3)])
    );
    assert!(matches!(
        &members[1],
        Expr::InList {
            list: InList::ListParam(4),
            ..
        }
    ));
    assert!(parse(b"select ?", LexMode::default()).is_err());
}

#[test]
fn rows_of_literals_become_one_slot() {
    let (digested, parsed) = parameterised(
        "insert into t (a, b) values (1, 'x'), (2, 'y') on duplicate key update a = 3",
    );
    let Statement::Insert(insert) = parsed.statement else {
        panic!("no insert")
    };
    assert_eq!(insert.source, InsertSource::RowsParam(0));
    assert_eq!(insert.on_duplicate[0].value, Expr::Param(1));
    assert_eq!(digested.slots()[0].width, 2);
    let (_, parsed) = parameterised("insert into t values (1, now()), (2, default)");
    assert!(
        matches!(parsed.statement, Statement::Insert(i) if matches!(&i.source, InsertSource::Values(v) if v.len() == 2))
    );
}

#[test]
fn folded_list_in_the_wrong_place_is_unfolded() {
    let (_, parsed) = parameterised("select position('a' in ('abc')) from t where b in (1, 2)");
    assert!(matches!(parsed.statement, Statement::Query(_)));
    let (_, parsed) = parameterised("select a in (1, -2), (b, c) in ((3, 4)) from t");
    let Statement::Query(query) = parsed.statement else {
        panic!("no query")
    };
    let QueryBody::Select(select) = query.body else {
        panic!("no select")
    };
    let SelectItem::Expr {
        expr: Expr::InList {
            list: InList::Exprs(list),
            ..
        },
        ..
    } = &select.items[0]
    else {
        panic!("no list")
    };
    assert_eq!(list.len(), 2);
}

#[test]
fn names_and_keywords() {
    assert!(matches!(expr("status"), Expr::Column(c) if c.name.value == "status"));
    assert!(matches!(expr("t.select"), Expr::Column(c) if c.name.value == "select"));
    assert!(matches!(expr("`a``b`"), Expr::Column(c) if c.name.value == "a`b" && c.name.quoted));
    assert!(matches!(expr("1a"), Expr::Column(c) if c.name.value == "1a"));
    assert!(matches!(expr("@`x y`"), Expr::UserVar(n) if n == "x y"));
    assert!(matches!(
        expr("@@global.max_connections"),
        Expr::SysVar {
            scope: Some(VarScope::Global),
            ..
        }
    ));
    assert!(
        matches!(expr("_latin1'a'"), Expr::Literal(Literal::String(s)) if s.charset.as_deref() == Some("latin1"))
    );
    assert!(matches!(expr("'a' 'b'"), Expr::Literal(Literal::String(s)) if s.bytes == b"ab"));
    assert!(matches!(select("select 1 as 'x y'").items.remove(0),
        SelectItem::Expr { alias: Some(a), .. } if a.value == "x y"));
}

#[test]
fn invalid_utf8_in_names_is_error_1300() {
    let e = parse(b"select `a\xff`", LexMode::default()).expect_err("bad name");
    assert_eq!(e.errno(), 1300);
    assert!(parse(b"select 'a\xff'", LexMode::default()).is_ok());
}
