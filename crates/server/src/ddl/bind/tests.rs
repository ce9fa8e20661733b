//! Definitions there and back, and the errors of bad ones. The texts are MySQL's.

use std::sync::Arc;

use nfold_catalog::{IndexDef, IndexId, IndexKind, SchemaSnapshot, TableDef, TableId};
use nfold_engine::TableSpec;
use nfold_sql::ast::Statement;
use nfold_sql::lexer::LexMode;
use nfold_types::collation::CollationId;
use nfold_types::convert::StoreMode;
use nfold_types::temporal::{DateFlags, TimeZone, Timestamp};
use nfold_types::{SqlError, Warnings};

use super::alter::{Change, Source};
use super::{DdlCx, alter, table};
use crate::ddl::show;

fn with_cx<T>(f: impl FnOnce(&mut DdlCx<'_>) -> T) -> T {
    let mode = StoreMode {
        strict: true,
        ignore: false,
        dates: DateFlags::default(),
        truncate_fractional: false,
        time_zone: TimeZone::Fixed(0),
        now: Timestamp::from_micros(0, 6),
    };
    let mut warnings = Warnings::default();
    let utf8 = CollationId::UTF8MB4_0900_AI_CI;
    f(&mut DdlCx {
        mode: &mode,
        collation: utf8,
        connection: utf8,
        sql_mode: nfold_plan::SqlMode::DEFAULT,
        no_engine_substitution: true,
        schema: &SchemaSnapshot::default(),
        foreign_key_checks: true,
        standard_keys: true,
        has_hash_indexes: false,
        fulltext: nfold_catalog::FulltextOptions {
            ngram_chars: 2,
            min_chars: 3,
            max_chars: 84,
            stopwords: true,
        },
        warnings: &mut warnings,
    })
}

fn create(sql: &str) -> Result<TableSpec, SqlError> {
    match nfold_sql::parser::parse(sql.as_bytes(), LexMode::default())? {
        Statement::CreateTable(c) => with_cx(|cx| table::bind(&c, &[], "d", cx)),
        other => panic!("{other:?}"),
    }
}

/// The definition that the engine would create from a specification.
fn define(spec: TableSpec) -> TableDef {
    let mut indexes: Vec<IndexDef> = spec
        .indexes
        .into_iter()
        .enumerate()
        .map(|(n, i)| IndexDef {
            id: IndexId(n as u64),
            name: i.name,
            kind: i.kind,
            parts: i.parts,
            root: 0,
            comment: i.comment,
            btree: i.btree,
            generated: i.generated,
            visible: i.visible,
        })
        .collect();
    indexes.sort_by_key(|i| i.kind != IndexKind::Primary);
    TableDef {
        id: TableId(1),
        schema: spec.schema,
        name: spec.name,
        columns: spec.columns,
        indexes,
        foreign_keys: spec.foreign_keys,
        checks: spec.checks,
        bound: nfold_catalog::BoundExprs::default(),
        collation: spec.collation,
        options: spec.options,
        space: 1,
        row_version: 0,
        create_time: 0,
        relation: nfold_catalog::Relation::Table,
    }
}

fn shown(sql: &str) -> String {
    let always = show::Quoting { always: true };
    show::create_table(
        (&define(create(sql).unwrap()), false),
        1,
        &TimeZone::Fixed(0),
        always,
    )
}

#[test]
fn sysbench_table() {
    let text = shown(
        "CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
         pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE = innodb */",
    );
    assert_eq!(
        text,
        "CREATE TABLE `sbtest1` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `k` int NOT NULL DEFAULT '0',\n  \
         `c` char(120) NOT NULL DEFAULT '',\n  `pad` char(60) NOT NULL DEFAULT '',\n  PRIMARY KEY (`id`)\n\
         ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
    );
}

#[test]
fn every_clause_comes_back() {
    let text = shown(
        "CREATE TABLE `t``x` (a bigint unsigned, b decimal(8,2) default 1.5, c varchar(10) character set latin1 unique, \
         d text, e timestamp null, f datetime(3) default current_timestamp(3) on update current_timestamp(3) comment 'it''s', \
         g enum('x','y') default 'y', h bit(3) default b'101', i tinyint(1), key (d(10), a desc), key (a), unique key (b)) comment='t'",
    );
    assert_eq!(
        text,
        "CREATE TABLE `t``x` (\n  `a` bigint unsigned DEFAULT NULL,\n  `b` decimal(8,2) DEFAULT '1.50',\n  \
         `c` varchar(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,\n  `d` text,\n  \
         `e` timestamp NULL DEFAULT NULL,\n  \
         `f` datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3) COMMENT 'it''s',\n  \
         `g` enum('x','y') DEFAULT 'y',\n  `h` bit(3) DEFAULT b'101',\n  `i` tinyint(1) DEFAULT NULL,\n  \
         UNIQUE KEY `c` (`c`),\n  KEY `d` (`d`(10),`a` DESC),\n  KEY `a` (`a`),\n  UNIQUE KEY `b` (`b`)\n\
         ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='t'"
    );
}

#[test]
fn bad_definitions() {
    for (sql, expected) in [
        (
            "CREATE TABLE t (a int, A int)",
            "1060 Duplicate column name 'A'",
        ),
        (
            "CREATE TABLE t (a varchar(20000))",
            "1074 Column length too big for column 'a' (max = 16383); use BLOB or TEXT instead",
        ),
        (
            "CREATE TABLE t (a char(256))",
            "1074 Column length too big for column 'a' (max = 255); use BLOB or TEXT instead",
        ),
        (
            "CREATE TABLE t (a decimal(66))",
            "1426 Too-big precision 66 specified for 'a'. Maximum is 65.",
        ),
        (
            "CREATE TABLE t (a datetime(7))",
            "1426 Too-big precision 7 specified for 'a'. Maximum is 6.",
        ),
        (
            "CREATE TABLE t (a int default 'x')",
            "1067 Invalid default value for 'a'",
        ),
        (
            "CREATE TABLE t (a int not null default null)",
            "1067 Invalid default value for 'a'",
        ),
        (
            "CREATE TABLE t (a text default 'x')",
            "1101 BLOB, TEXT, GEOMETRY or JSON column 'a' can't have a default value",
        ),
        (
            "CREATE TABLE t (a text, key (a))",
            "1170 BLOB/TEXT column 'a' used in key specification without a key length",
        ),
        (
            "CREATE TABLE t (a int, key (b))",
            "1072 Key column 'b' doesn't exist in table",
        ),
        (
            "CREATE TABLE t (a int primary key, b int primary key)",
            "1068 Multiple primary key defined",
        ),
        (
            "CREATE TABLE t (a int null primary key)",
            "1171 All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead",
        ),
        (
            "CREATE TABLE t (a int auto_increment)",
            "1075 Incorrect table definition; there can be only one auto column and it must be defined as a key",
        ),
        (
            "CREATE TABLE t (a varchar(3000), key (a))",
            "1071 Specified key was too long; max key length is 3072 bytes",
        ),
        (
            "CREATE TABLE t (a int, key k (a), key K (a))",
            "1061 Duplicate key name 'K'",
        ),
        (
            "CREATE TABLE t (a varchar(10) collate nope)",
            "1273 Unknown collation: 'nope'",
        ),
        (
            "CREATE TABLE t (a int) engine=nope",
            "1286 Unknown storage engine 'nope'",
        ),
        (
            "CREATE TABLE t (a enum('x','X'))",
            "1291 Column 'a' has duplicated value 'x' in ENUM",
        ),
        (
            "CREATE TABLE `t ` (a int)",
            "1103 Incorrect table name 't '",
        ),
    ] {
        let e = create(sql).expect_err(sql);
        assert_eq!(format!("{} {}", e.errno(), e.message), expected, "{sql}");
    }
}

fn altered(sql: &str) -> Change {
    let old = define(
        create(
            "CREATE TABLE t (a int primary key, b int, c varchar(5), key b (b), unique key c (c))",
        )
        .unwrap(),
    );
    match nfold_sql::parser::parse(sql.as_bytes(), LexMode::default()).unwrap() {
        Statement::AlterTable(a) => with_cx(|cx| alter::bind(&a, &old, cx)).unwrap().change,
        other => panic!("{other:?}"),
    }
}

#[test]
fn alter_finds_the_cheapest_way() {
    assert!(
        matches!(altered("ALTER TABLE t ADD INDEX x (b, c)"), Change::Indexes { add, drop } if add.len() == 1 && drop.is_empty())
    );
    assert!(
        matches!(altered("ALTER TABLE t DROP INDEX b, ADD UNIQUE (b)"), Change::Indexes { add, drop } if add.len() == 1 && drop.len() == 1)
    );
    assert!(
        matches!(altered("ALTER TABLE t RENAME COLUMN b TO bb, ALTER c SET DEFAULT 'x'"), Change::Definition(d) if &*d.columns[1].name == "bb")
    );
    assert_eq!(altered("ALTER TABLE t RENAME TO u"), Change::Nothing);
    let Change::Copy { spec, columns } =
        altered("ALTER TABLE t ADD COLUMN z int FIRST, DROP COLUMN c, MODIFY b bigint AFTER z")
    else {
        panic!("a copy")
    };
    assert_eq!(
        spec.columns.iter().map(|c| &*c.name).collect::<Vec<_>>(),
        ["z", "b", "a"]
    );
    assert_eq!(columns, [Source::Default, Source::Old(1), Source::Old(0)]);
    let parts = |name: &str| {
        spec.indexes
            .iter()
            .find(|i| &*i.name == name)
            .map(|i| i.parts[0].column)
    };
    assert_eq!(
        (parts("PRIMARY"), parts("b"), parts("c")),
        (Some(2), Some(1), None)
    );
}

/// An engine keeps the order of unique keys before others; the text must not depend on who made it.
#[test]
fn names_are_kept_apart() {
    let spec = create("CREATE TABLE t (a int, b int, key (a), key (a, b), key a_2 (b))").unwrap();
    let names: Vec<Arc<str>> = spec.indexes.iter().map(|i| i.name.clone()).collect();
    assert_eq!(names.iter().filter(|n| n.starts_with('a')).count(), 3);
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 3, "{names:?}");
}
