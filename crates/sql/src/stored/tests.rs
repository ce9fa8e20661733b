use nfold_types::charset;

use super::*;

fn shown(sql: &str) -> String {
    let e = parse(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    text(&normal(&e, &charset::UTF8MB4))
}

/// The right side of each pair is what MySQL 9.7 prints.
#[test]
fn normal_form_is_that_of_mysql() {
    for (sql, expected) in [
        ("a>0", "(`a` > 0)"),
        ("a > -1", "(`a` > -(1))"),
        ("a != 1", "(`a` <> 1)"),
        ("not a", "(0 = `a`)"),
        ("not (a > b)", "(`a` <= `b`)"),
        ("not (a is null)", "(`a` is not null)"),
        (
            "s in ('x','y''z')",
            "(`s` in (_utf8mb4'x',_utf8mb4'y\\'z'))",
        ),
        ("s in ('x')", "(`s` = _utf8mb4'x')"),
        ("a not between 1 and 5", "(`a` not between 1 and 5)"),
        (
            "s not like 'x%' escape '|'",
            "(not((`s` like _utf8mb4'x%' escape _utf8mb4'|')))",
        ),
        ("s regexp '^x'", "regexp_like(`s`,_utf8mb4'^x')"),
        (
            "(a and b) or (a>1 and b>1)",
            "(((0 <> `a`) and (0 <> `b`)) or ((`a` > 1) and (`b` > 1)))",
        ),
        ("not(a and b)", "((0 = `a`) or (0 = `b`))"),
        ("a xor b", "((0 <> `a`) xor (0 <> `b`))"),
        ("a is true", "((0 <> `a`) is true)"),
        ("a is unknown", "(`a` is null)"),
        ("a+b*2", "(`a` + (`b` * 2))"),
        ("mod(a,b)", "(`a` % `b`)"),
        ("a div b", "(`a` DIV `b`)"),
        ("~a & b", "(~(`a`) & `b`)"),
        ("- -a", "-(-(`a`))"),
        ("+a", "`a`"),
        ("lcase(s)='x'", "(lower(`s`) = _utf8mb4'x')"),
        ("concat(s,'-',a)", "concat(`s`,_utf8mb4'-',`a`)"),
        (
            "case when a>0 then 1 else 0 end",
            "(case when (`a` > 0) then 1 else 0 end)",
        ),
        (
            "cast(a as char(10))",
            "cast(`a` as char(10) charset utf8mb4)",
        ),
        ("cast(s as decimal(10,2))", "cast(`s` as decimal(10,2))"),
        (
            "cast(s as binary(3))",
            "cast(`s` as char(3) charset binary)",
        ),
        ("date_add(d, interval 1 month)", "(`d` + interval 1 month)"),
        ("adddate(d, 3)", "(`d` + interval 3 day)"),
        ("extract(year from d)", "extract(year from `d`)"),
        (
            "date(d) = '2020-01-01'",
            "(cast(`d` as date) = _utf8mb4'2020-01-01')",
        ),
        ("d > date '2020-01-01'", "(`d` > DATE'2020-01-01')"),
        ("datediff(d,e)", "(to_days(`d`) - to_days(`e`))"),
        ("timestampdiff(day,d,e)", "timestampdiff(DAY,`d`,`e`)"),
        ("trim(s)", "trim(`s`)"),
        (
            "trim(leading 'x' from s)",
            "trim(leading _utf8mb4'x' from `s`)",
        ),
        ("substring(s from 2 for 3)", "substr(`s`,2,3)"),
        ("instr(s,'x')", "locate(_utf8mb4'x',`s`)"),
        (
            "j->>'$.a' = 'x'",
            "(json_unquote(json_extract(`j`,_utf8mb4'$.a')) = _utf8mb4'x')",
        ),
        ("5 member of (j)", "5 member of (`j`)"),
        ("x'4142'", "0x4142"),
        ("b'101'", "0x05"),
        ("(a,b) = (1,2)", "((`a` = 1) and (`b` = 2))"),
        ("(a,b) in ((1,2),(3,4))", "((`a`,`b`) in ((1,2),(3,4)))"),
        ("t.a > 0", "(`a` > 0)"),
        (
            "s collate utf8mb4_bin = 'x'",
            "((`s` collate utf8mb4_bin) = _utf8mb4'x')",
        ),
        ("a = b = 1", "((`a` = `b`) = 1)"),
        ("weekofyear(d)", "week(`d`,3)"),
        (
            "current_date + interval 1 day",
            "(curdate() + interval 1 day)",
        ),
        ("s sounds like 'x'", "(soundex(`s`) = soundex(_utf8mb4'x'))"),
        ("convert(s using latin1)", "convert(`s` using latin1)"),
        ("default(a)", "default(`a`)"),
        ("if(null,1,2)", "if(NULL,1,2)"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
        assert_eq!(shown(expected), expected, "{sql}: the text again");
    }
}

#[test]
fn refusal_names_what_mysql_names() {
    let known = |name: &str| name != "nosuch";
    let refused = |sql: &str, default| refusal(&parse(sql).unwrap(), default, &known);
    let named = |name: &str| Some(Refusal::Function(Some(name.to_owned())));
    assert_eq!(refused("a > rand()", false), named("rand"));
    assert_eq!(refused("a > rand()", true), None);
    assert_eq!(refused("a > sleep(1)", true), named("sleep"));
    assert_eq!(refused("nosuch(a)", true), named("`nosuch`"));
    assert_eq!(refused("a > @x", false), Some(Refusal::Variable));
    assert_eq!(refused("a > @@port", false), Some(Refusal::Variable));
    assert_eq!(
        refused("a > (select 1)", false),
        Some(Refusal::Function(None))
    );
    assert_eq!(refused("a > sum(a)", false), Some(Refusal::Aggregate));
    assert_eq!(
        refused("sum(a) over () > 1", false),
        Some(Refusal::Window("sum".into()))
    );
    assert_eq!(refused("lower(a) = 'x' and json_valid(b)", false), None);
}
