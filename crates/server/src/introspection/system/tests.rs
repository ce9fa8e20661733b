//! The definitions of system tables.

use super::*;

#[test]
fn every_definition_binds_and_is_found() {
    assert!(tables().len() > 60);
    let mut ids: Vec<_> = tables().iter().map(|t| t.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), tables().len(), "no id is given twice");
    for t in tables() {
        let found = find(&t.schema, &t.name).expect("found by its own name");
        assert_eq!(found.id, t.id);
    }
}

#[test]
fn names_of_information_schema_have_no_case() {
    assert!(find("INFORMATION_schema", "tables").is_some());
    assert!(find("information_schema", "nosuch").is_none());
    assert!(find("performance_schema", "threads").is_some());
    assert!(find("performance_schema", "THREADS").is_none());
    assert!(find("Performance_Schema", "threads").is_none());
    assert!(find("t", "TABLES").is_none());
}

#[test]
fn types_are_those_of_the_text() {
    let tables = find(INFORMATION, "TABLES").expect("there is one");
    let column = |name| &tables.columns[tables.column(name).expect("there is one")];
    assert_eq!(column("TABLE_ROWS").ty.to_string(), "bigint unsigned");
    assert!(column("TABLE_ROWS").nullable && !column("TABLE_NAME").nullable);
    assert_eq!(
        column("TABLE_TYPE").ty.to_string(),
        "enum('BASE TABLE','VIEW','SYSTEM VIEW')"
    );
    assert_eq!(
        column("TABLE_NAME").ty.collation.known().name,
        "utf8mb3_bin"
    );
}
