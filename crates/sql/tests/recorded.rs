//! Compares this crate's syntax with the answers of a real MySQL (recorded by `record.py`).

use nfold_sql::ast::*;
use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser;

mod eval;

/// The lines of a recorded file after the first one, which contains the version.
fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().skip(1)
}

/// Statements on which 8.4, which this server implements, and 9.7, which gave the answers, are
/// known to differ, and statements whose difference is accepted for the given reason.
const ACCEPTED: &[(&str, &str)] = &[
    ("select * from t tablesample bernoulli (10)", "9.x syntax"),
    (
        "select a from t qualify row_number() over () = 1",
        "9.x syntax",
    ),
    ("select a from t group by rollup (a)", "9.x syntax"),
    (
        "lock tables t read write",
        "refused for being prepared before its end is seen; executed, it is a syntax error",
    ),
    (
        "select a into x y from t",
        "x would be a variable of a stored procedure, of which there are none",
    ),
];

#[test]
fn statements_are_accepted_and_rejected_as_by_mysql() {
    let mut wrong = Vec::new();
    for line in lines(include_str!("data/verdicts.txt")) {
        let (verdict, text) = line.split_once('\t').expect("two fields");
        if ACCEPTED.iter().any(|(t, _)| *t == text) {
            continue;
        }
        let mut digested = Digested::new();
        digested.read(text.as_bytes(), LexMode::default());
        let ours = match parser::parse_parameterised(text.as_bytes(), &digested, true) {
            Ok(_) => match digested.next() {
                Some(next) => near(&parser::syntax_error_at(text.as_bytes(), next).message),
                None => "ok".to_string(),
            },
            Err(e) if e.errno() == 1065 => "empty".to_string(),
            Err(e) if e.errno() == 1064 => near(&e.message),
            // Semantic errors found while parsing.
            Err(_) => "ok".to_string(),
        };
        if ours != verdict {
            wrong.push(format!("{text}\n   mysql: {verdict}\n   ours:  {ours}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The end of a 1064 message, from "near" on.
fn near(message: &str) -> String {
    message
        .find("near '")
        .map_or(message, |at| &message[at..])
        .to_string()
}

#[test]
fn operators_bind_as_in_mysql() {
    const VALUES: [[&str; 3]; 9] = [
        ["1", "0", "2"],
        ["0", "1", "1"],
        ["3", "2", "0"],
        ["5", "NULL", "1"],
        ["NULL", "1", "0"],
        ["6", "3", "2"],
        ["0", "0", "1"],
        ["2", "2", "3"],
        ["7", "4", "5"],
    ];
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for line in lines(include_str!("data/operators.txt")) {
        let mut fields = line.split('\t');
        let mode = match fields.next().expect("mode") {
            "PIPES_AS_CONCAT" => LexMode::PIPES_AS_CONCAT,
            "HIGH_NOT_PRECEDENCE" => LexMode::HIGH_NOT_PRECEDENCE,
            _ => LexMode::default(),
        };
        let template = fields.next().expect("expression");
        for (values, expected) in VALUES.iter().zip(fields) {
            let text = format!("SELECT {}", put(template, values));
            let ours = match parser::parse(text.as_bytes(), mode) {
                Err(e) if e.errno() == 1064 => "syntax".to_string(),
                Err(e) => e.to_string(),
                Ok(_) if expected == "-" => continue,
                Ok(statement) => eval::shown(&eval::eval(item(&statement))),
            };
            compared += 1;
            if !eval::same(&ours, expected) {
                wrong.push(format!("{text} ({mode:?}): mysql {expected}, ours {ours}"));
                break;
            }
        }
    }
    assert!(compared > 10_000, "only {compared} answers compared");
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Replaces the letters A, B and C that are words of their own by values.
fn put(template: &str, values: &[&str; 3]) -> String {
    let words = template.split(' ').map(|word| {
        let bare = word.trim_matches(['(', ')', ',']);
        match bare {
            "A" => word.replace('A', values[0]),
            "B" => word.replace('B', values[1]),
            "C" => word.replace('C', values[2]),
            _ => word.to_string(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The only item of a SELECT without FROM.
fn item(statement: &Statement) -> &Expr {
    let Statement::Query(query) = statement else {
        panic!("no query")
    };
    let QueryBody::Select(select) = &query.body else {
        panic!("no select")
    };
    let SelectItem::Expr { expr, .. } = &select.items[0] else {
        panic!("no expression")
    };
    expr
}

/// Digest texts that differ, with the reason.
const DIGESTS_APART: &[(&str, &str)] = &[("select ``", "MySQL loses the empty name")];

#[test]
fn digest_texts_equal_mysql() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for line in lines(include_str!("data/digests.txt")) {
        let (expected, text) = line.split_once('\t').expect("two fields");
        if DIGESTS_APART.iter().any(|(t, _)| *t == text) {
            continue;
        }
        compared += 1;
        let ours = nfold_sql::digest_text::digest_text(text.as_bytes(), LexMode::default());
        if ours != expected {
            wrong.push(format!("{text}\n   mysql: {expected}\n   ours:  {ours}"));
        }
    }
    assert!(compared > 900, "only {compared} digests compared");
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
