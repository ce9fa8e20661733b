use super::*;

fn key(text: &str) -> String {
    let mut d = Digested::new();
    d.read(text.as_bytes(), LexMode::default());
    String::from_utf8_lossy(d.text()).into_owned()
}

fn digested(text: &str) -> Digested {
    let mut d = Digested::new();
    d.read(text.as_bytes(), LexMode::default());
    d
}

#[test]
fn literals_lists_and_rows_fold() {
    for (text, expected) in [
        (
            "select  c from sbtest1 where id=42",
            "SELECT `c` FROM `sbtest1` WHERE `id` = ?",
        ),
        (
            "SELECT * FROM t WHERE d = 0 AND g IN (1, 2,-3)",
            "SELECT * FROM `t` WHERE `d` = ? AND `g` IN (...)",
        ),
        (
            "SELECT a FROM t WHERE (a,b) in ((1,'x'),(2,'y'))",
            "SELECT `a` FROM `t` WHERE ( `a` , `b` ) IN ((...))",
        ),
        (
            "INSERT INTO t VALUES (1,'a',NULL),(2, 'b', 3)",
            "INSERT INTO `t` VALUES (...)",
        ),
        (
            "INSERT INTO t VALUES (1,NOW())",
            "INSERT INTO `t` VALUES ( ? , NOW ( ) )",
        ),
        (
            "select a from t where b in (1,a)",
            "SELECT `a` FROM `t` WHERE `b` IN ( ? , `a` )",
        ),
        (
            "select Status /* x */ from `T` -- y\n",
            "SELECT Status FROM `T`",
        ),
        ("select 1; select 2", "SELECT ?"),
        ("set x in (1,2)", "SET `x` IN ( ? , ? )"),
        ("explain select 1 in (1)", "EXPLAIN SELECT ? IN (...)"),
        (
            "explain format=json select 1 in (1)",
            "EXPLAIN FORMAT = JSON SELECT ? IN (...)",
        ),
    ] {
        assert_eq!(key(text).to_uppercase(), expected.to_uppercase(), "{text}");
    }
}

#[test]
fn key_contains_kinds_and_widths() {
    let same = [
        (
            "select a from t where b in (1,2)",
            "SELECT a  FROM t WHERE b IN (3)",
        ),
        (
            "insert into t values (1,'a')",
            "insert into t values (NULL,2),(3,4)",
        ),
        (
            "select a from t where b = 1.25",
            "select a from t where b = 9.99",
        ),
        (
            "select a from t where b = 'x'",
            "select a from t where b = \"yy''\"",
        ),
    ];
    for (a, b) in same {
        assert_eq!(digested(a).key(), digested(b).key(), "{a} / {b}");
        assert_eq!(digested(a).hash(), digested(b).hash());
    }
    let different = [
        (
            "select a from t where b in (1,2)",
            "select a from t where b in (1,'2')",
        ),
        (
            "select a from t where b in (1,2)",
            "select a from t where b in (1,null)",
        ),
        (
            "select a from t where b = 1",
            "select a from t where b = '1'",
        ),
        (
            "select a from t where b = 1.5",
            "select a from t where b = 1.55",
        ),
        ("select a from t where b = 1", "select a from t where b = ?"),
        ("select a from t where b = 1", "select A from t where b = 1"),
        ("insert into t values (1,2)", "insert into t values (1,2,3)"),
        ("select f(1,2)", "select f(1,2,3)"),
    ];
    for (a, b) in different {
        assert_ne!(digested(a).key(), digested(b).key(), "{a} / {b}");
        assert_ne!(digested(a).hash(), digested(b).hash());
    }
}

#[test]
fn list_values_are_read_back() {
    let text = "select * from t where a = 7 and b in (1, -2 , 'x''y', NULL, 0x1F, 1.5,true, 18446744073709551615)";
    let d = digested(text);
    assert_eq!(d.slots().len(), 2);
    assert_eq!(
        d.literal(0, text.as_bytes()),
        Some(Lit::Int {
            negative: false,
            value: 7
        })
    );
    let list: Vec<_> = d.list(1, text.as_bytes()).collect();
    assert_eq!(list.len(), d.slots()[1].count as usize);
    assert_eq!(
        list[1],
        Lit::Int {
            negative: true,
            value: 2
        }
    );
    assert!(matches!(&list[2], Lit::String(s) if s.to_vec() == b"x'y"));
    assert_eq!(list[3..5], [Lit::Null, Lit::Hex(b"1F")]);
    assert_eq!(
        list[6..],
        [
            Lit::Bool(true),
            Lit::Int {
                negative: false,
                value: u64::MAX
            }
        ]
    );

    let text = "insert into t values (1,2) , ( 3,4 ),(5,6)";
    let d = digested(text);
    let slot = d.slots()[0];
    assert_eq!(
        (slot.kind, slot.width, slot.count, slot.rows),
        (SlotKind::Rows, 2, 3, true)
    );
    let sum: u64 = d
        .list(0, text.as_bytes())
        .map(|l| {
            if let Lit::Int { value, .. } = l {
                value
            } else {
                0
            }
        })
        .sum();
    assert_eq!(sum, 21);
}

#[test]
fn multi_statement_text_is_split() {
    let text = b"select 1; select ';' ;; ";
    let mut d = Digested::new();
    d.read(text, LexMode::default());
    assert_eq!((d.end(), d.next()), (8, Some(10)));
    d.read(&text[10..], LexMode::default());
    assert_eq!(d.next(), None);
}

#[test]
fn long_list_is_one_slot() {
    let ids: Vec<String> = (0..90_000).map(|i| i.to_string()).collect();
    let text = format!("select * from t where id in ({})", ids.join(","));
    let d = digested(&text);
    assert_eq!(d.slots().len(), 1);
    assert_eq!(d.slots()[0].count, 90_000);
    assert!(d.key().len() < 100);
    let ok = d.list(0, text.as_bytes()).enumerate().all(|(i, l)| {
        l == Lit::Int {
            negative: false,
            value: i as u64,
        }
    });
    assert!(ok);
}

#[test]
fn structural_literals_distinguish_plans() {
    let text = b"select a, 'x' from t where b = 5 limit 7";
    let d = digested(std::str::from_utf8(text).expect("text"));
    let roles = [
        LiteralRole::Structural,
        LiteralRole::Parameter,
        LiteralRole::Structural,
    ];
    let mut key = Vec::new();
    d.append_structural(&roles, text, &mut key);
    assert_eq!(key, b"\x03\0\0\0'x'\x01\0\0\x007");
    assert!(d.structural_is(&roles, text, &key));
    assert!(!d.structural_is(&roles, text, &key[..key.len() - 1]));
    let other = b"select a, 'x' from t where b = 6 limit 8";
    assert!(!d.structural_is(&roles, other, &key));
    let same = b"select a, 'x' from t where b = 9 limit 7";
    assert!(d.structural_is(&roles, same, &key));
    assert!(d.structural_is(&[LiteralRole::Parameter; 3], text, b""));
    let hash = d.structural_hash(&roles, text);
    assert_eq!(d.structural_hash(&roles, same), hash);
    assert_ne!(d.structural_hash(&roles, other), hash);
    assert_eq!(d.structural_hash(&[LiteralRole::Parameter; 3], text), 0);
}

/// Short strings are read without the general search, with the result of that search.
#[test]
fn short_strings_of_lists_are_read_whole() {
    let strings = [
        "",
        "a",
        "1234567",
        "12345678",
        "123456789",
        "0123456789abcde",
        "0123456789abcdef",
        "0123456789abcdefg",
        "\u{fc}",
        "a''b",
        "''",
        "a''",
        "a\\'b",
        "\\\\",
        "1234567''",
        "1234567\\'",
        "12345678''9",
    ];
    let long = "x".repeat(1100);
    for text in strings {
        for others in [
            ["", ""],
            ["", ",'x'"],
            ["", ",'a long string behind it'"],
            ["", &format!(",'{long}'")],
            ["", &format!(",'{long}','x'")],
            [&format!("'{long}',"), ""],
            [&format!("'x','{long}',"), ",'x'"],
        ] {
            let [before, behind] = others;
            let statement = format!("SELECT 1 IN ({before}'{text}'{behind})");
            let d = digested(&statement);
            assert!(d.text().ends_with(b"(...)"), "{statement}");
            let expected: Vec<_> = d.list(1, statement.as_bytes()).collect();
            let Lit::String(own) = expected[before.matches("',").count()] else {
                panic!("{statement}");
            };
            assert_eq!(own.raw, text.as_bytes());
            let mut list = d.list(1, statement.as_bytes());
            for lit in &expected {
                let Lit::String(raw) = lit else {
                    panic!("{statement}");
                };
                list.advance();
                match list.plain_string() {
                    Some(plain) => assert_eq!(Some(plain), raw.plain(), "{statement}"),
                    None => assert_eq!(list.literal().as_ref(), Some(lit), "{statement}"),
                }
            }
            list.advance();
            assert_eq!((list.plain_string(), list.literal()), (None, None));
        }
    }
}
