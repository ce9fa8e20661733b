//! Character sets and collations.

use nfold_types::{Charset, Collation, ColumnType, TypeKind, Value, charset};

use super::{View, number, text};

/// SHOW CHARACTER SET.
pub fn character_sets() -> View {
    let mut view = View::new(&[
        ("Charset", text(64)),
        ("Description", text(2048)),
        ("Default collation", text(64)),
        ("Maxlen", ColumnType::new(TypeKind::Int).with_unsigned()),
    ]);
    for set in charset::ALL {
        let default = crate::ddl::default_collation(set).known().name;
        view.push(vec![
            set.name.into(),
            description(set).into(),
            default.into(),
            Value::UInt(set.max_len.into()),
        ]);
    }
    view
}

fn description(set: &Charset) -> &'static str {
    match set.name {
        "ascii" => "US ASCII",
        "binary" => "Binary pseudo charset",
        "latin1" => "cp1252 West European",
        "utf8mb3" => "UTF-8 Unicode",
        _ => "UTF-8 Unicode",
    }
}

/// SHOW COLLATION.
pub fn collations() -> View {
    let mut view = View::new(&[
        ("Collation", text(64)),
        ("Charset", text(64)),
        ("Id", number()),
        ("Default", text(3)),
        ("Compiled", text(3)),
        ("Sortlen", ColumnType::new(TypeKind::Int).with_unsigned()),
        ("Pad_attribute", text(9)),
    ]);
    let mut all: Vec<&Collation> = Collation::all().iter().collect();
    all.sort_unstable_by_key(|c| c.name);
    for c in all {
        view.push(vec![
            c.name.into(),
            c.charset.name.into(),
            Value::UInt(c.id.0.into()),
            (if c.is_default { "Yes" } else { "" }).into(),
            "Yes".into(),
            Value::UInt(if c.name.contains("_0900_") && !c.name.ends_with("_bin") {
                0
            } else {
                1
            }),
            (if c.pad_space { "PAD SPACE" } else { "NO PAD" }).into(),
        ]);
    }
    view
}
