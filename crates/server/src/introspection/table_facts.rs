//! Properties of tables and columns that both SHOW and `information_schema` report.

use nfold_catalog::{
    ColumnDef, ColumnDefault, IndexDef, IndexKind, IndexPart, TableDef, TableStats, Visibility,
};

/// The row format in SHOW TABLE STATUS.
pub fn row_format(def: &TableDef) -> String {
    let written = def.options.row_format.as_deref();
    written.map_or("Dynamic".into(), title)
}

/// The options with which a table was created.
pub fn create_options(def: &TableDef) -> String {
    let written = def.options.row_format.as_deref();
    written.map_or(String::new(), |f| {
        format!("row_format={}", f.to_ascii_uppercase())
    })
}

fn title(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or(String::new(), |c| {
        c.to_uppercase()
            .chain(chars.flat_map(char::to_lowercase))
            .collect()
    })
}

/// `PRI`, `UNI`, `MUL` or empty, as in SHOW COLUMNS.
pub fn column_key(def: &TableDef, column: usize) -> &'static str {
    let visible = || {
        def.indexes
            .iter()
            .filter(|i| i.kind != IndexKind::HiddenRowId)
    };
    let first = |i: &&nfold_catalog::IndexDef| {
        let first = i.shown_parts().first();
        first.is_some_and(|p| p.column == column)
    };
    let explicit = visible().find(|i| i.kind == IndexKind::Primary);
    let primary = explicit.or_else(|| def.promoted_key().map(|n| &def.indexes[n]));
    if primary.is_some_and(|i| i.parts.iter().any(|p| p.column == column)) {
        return "PRI";
    }
    let alone = |i: &&nfold_catalog::IndexDef| i.kind == IndexKind::Unique && i.parts.len() == 1;
    if visible().filter(first).any(|i| alone(&i)) {
        return "UNI";
    }
    if visible().any(|i| first(&i)) {
        "MUL"
    } else {
        ""
    }
}

/// The column Extra of SHOW COLUMNS.
pub fn column_extra(c: &ColumnDef) -> String {
    let mut words = Vec::new();
    if c.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if matches!(
        c.default,
        ColumnDefault::CurrentTimestamp(_) | ColumnDefault::Expr(_)
    ) {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if let Some(g) = &c.generated {
        let kind = if g.stored { "STORED" } else { "VIRTUAL" };
        words.push(format!("{kind} GENERATED"));
    }
    match c.on_update_now {
        Some(0) => words.push("on update CURRENT_TIMESTAMP".to_owned()),
        Some(fsp) => words.push(format!("on update CURRENT_TIMESTAMP({fsp})")),
        None => {}
    }
    if c.visibility == Visibility::Invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}

/// The column name of a key part; `None` for a functional part.
pub fn part_column(c: &ColumnDef) -> Option<&str> {
    (c.visibility != Visibility::Hidden).then_some(&*c.name)
}

/// The expression of a functional key part.
pub fn part_expression(c: &ColumnDef) -> Option<String> {
    let g = c.generated.as_ref()?;
    (c.visibility == Visibility::Hidden).then(|| nfold_sql::stored::escaped(&g.expr.text))
}

/// The type of an index, as SHOW INDEX shows it.
pub fn index_type(index: &IndexDef) -> &'static str {
    match index.fulltext() {
        Some(_) => "FULLTEXT",
        None => "BTREE",
    }
}

/// The order of a part, `A` or `D`; a full-text index has none.
pub fn shown_order(index: &IndexDef, part: &IndexPart) -> Option<&'static str> {
    index.fulltext().is_none().then_some(match part.desc {
        true => "D",
        false => "A",
    })
}

/// The number of distinct values of the first `seq + 1` parts of index number `n`. MySQL shows the
/// number of rows for a full-text index.
pub fn shown_cardinality(
    stats: &TableStats,
    (index, n): (&IndexDef, usize),
    seq: usize,
) -> Option<u64> {
    match index.fulltext() {
        Some(_) => Some(stats.rows),
        None => stats.indexes.get(n)?.distinct.get(seq).copied(),
    }
}
