//! SHOW CREATE TABLE: the statement that creates a table.

use std::fmt::Write;

use nfold_catalog::{
    ColumnDef, ColumnDefault, ForeignKeyDef, IndexDef, IndexKind, TableDef, ViewAlgorithm,
    ViewCheck, ViewDef, Visibility,
};
use nfold_types::collation::CollationId;
use nfold_types::temporal::TimeZone;
use nfold_types::{TypeKind, wire};

/// How names are quoted: `sql_quote_show_create`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoting {
    /// Whether names are quoted even if they need no quotes.
    pub always: bool,
}

impl Quoting {
    /// A name, in backquotes if requested or necessary.
    pub fn name(self, name: &str) -> String {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
        let free = !name.bytes().all(|b| b.is_ascii_digit())
            && name.bytes().all(plain)
            && nfold_sql::keywords::Kw::of(name.as_bytes()) == nfold_sql::keywords::Kw::Other;
        if free && !self.always {
            return name.to_owned();
        }
        format!("`{}`", name.replace('`', "``"))
    }
}

/// A string literal as MySQL writes it in definitions.
pub fn quote_string(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "''")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\0', "\\0");
    format!("'{escaped}'")
}

/// The text of SHOW CREATE TABLE. `auto_increment` is the next value, which is shown if it exceeds
/// 1. TIMESTAMP defaults are shown in `zone`.
pub fn create_table(
    (def, temporary): (&TableDef, bool),
    auto_increment: u64,
    zone: &TimeZone,
    quoting: Quoting,
) -> String {
    let shown = def.columns.iter();
    let shown = shown.filter(|c| c.visibility != Visibility::Hidden);
    let mut lines: Vec<String> = shown
        .map(|c| format!("  {}", column(c, def.collation, zone, quoting)))
        .collect();
    lines.extend(
        def.indexes
            .iter()
            .filter(|i| i.kind != IndexKind::HiddenRowId)
            .map(|i| format!("  {}", index(def, i, quoting))),
    );
    let mut keys: Vec<&ForeignKeyDef> = def.foreign_keys.iter().collect();
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    let quote = |name: &str| quoting.name(name);
    lines.extend(keys.iter().map(|k| format!("  {}", k.clause(def, quote))));
    lines.extend(def.checks.iter().map(|c| {
        let enforced = match c.enforced {
            true => "",
            false => " /*!80016 NOT ENFORCED */",
        };
        let name = quoting.name(&c.name);
        format!("  CONSTRAINT {name} CHECK ({}){enforced}", c.expr.text)
    }));
    let mut text = format!(
        "CREATE {}TABLE {} (\n{}\n) ENGINE=InnoDB",
        if temporary { "TEMPORARY " } else { "" },
        quoting.name(&def.name),
        lines.join(",\n")
    );
    if def.auto_increment_column().is_some() && auto_increment > 1 {
        write!(text, " AUTO_INCREMENT={auto_increment}").expect("writing to a String");
    }
    let collation = def.collation.known();
    write!(text, " DEFAULT CHARSET={}", collation.charset.name).expect("writing to a String");
    if !collation.is_default || collation.id == CollationId::UTF8MB4_0900_AI_CI {
        write!(text, " COLLATE={}", collation.name).expect("writing to a String");
    }
    if let Some(format) = &def.options.row_format {
        write!(text, " ROW_FORMAT={}", format.to_ascii_uppercase()).expect("writing to a String");
    }
    if !def.options.comment.is_empty() {
        write!(text, " COMMENT={}", quote_string(&def.options.comment))
            .expect("writing to a String");
    }
    text
}

/// The statement that creates a view.
pub fn create_view(def: &TableDef, view: &ViewDef, quoting: Quoting) -> String {
    let algorithm = match view.algorithm {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TempTable => "TEMPTABLE",
    };
    let always = Quoting { always: true };
    let columns = def.columns.iter().map(|c| quoting.name(&c.name));
    format!(
        "CREATE ALGORITHM={algorithm} DEFINER={}@{} SQL SECURITY {} VIEW {} ({}) AS {}{}",
        always.name(&view.definer.0),
        always.name(&view.definer.1),
        if view.invoker { "INVOKER" } else { "DEFINER" },
        quoting.name(&def.name),
        columns.collect::<Vec<_>>().join(","),
        String::from_utf8_lossy(&view.text),
        match view.check {
            ViewCheck::None => "",
            ViewCheck::Local => " WITH LOCAL CHECK OPTION",
            ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    )
}

fn column(c: &ColumnDef, table: CollationId, zone: &TimeZone, quoting: Quoting) -> String {
    let mut text = format!("{} {}", quoting.name(&c.name), c.ty);
    let textual =
        c.ty.collation != CollationId::BINARY && (c.ty.is_string() || c.ty.is_enum_or_set());
    if textual {
        let (own, named) = (
            c.ty.collation.known(),
            c.own_charset || c.ty.collation != table,
        );
        if named {
            write!(text, " CHARACTER SET {}", own.charset.name).expect("writing to a String");
        }
        let default = own.is_default && own.id != CollationId::UTF8MB4_0900_AI_CI;
        if c.own_charset || !own.is_default || (named && !default) {
            write!(text, " COLLATE {}", own.name).expect("writing to a String");
        }
    }
    if let Some(g) = &c.generated {
        let kind = if g.stored { "STORED" } else { "VIRTUAL" };
        write!(text, " GENERATED ALWAYS AS ({}) {kind}", g.expr.text).expect("writing to a String");
    }
    if !c.nullable {
        text.push_str(" NOT NULL");
    } else if matches!(c.ty.kind, TypeKind::Timestamp(_)) {
        text.push_str(" NULL");
    }
    if let Some(default) = default_text(c, zone) {
        write!(text, " DEFAULT {default}").expect("writing to a String");
    }
    if let Some(fsp) = c.on_update_now {
        write!(text, " ON UPDATE {}", now_text(fsp)).expect("writing to a String");
    }
    if c.auto_increment {
        text.push_str(" AUTO_INCREMENT");
    }
    if c.visibility == Visibility::Invisible {
        text.push_str(" /*!80023 INVISIBLE */");
    }
    if !c.comment.is_empty() {
        write!(text, " COMMENT {}", quote_string(&c.comment)).expect("writing to a String");
    }
    text
}

fn now_text(fsp: u8) -> String {
    if fsp == 0 {
        "CURRENT_TIMESTAMP".into()
    } else {
        format!("CURRENT_TIMESTAMP({fsp})")
    }
}

/// A default in a definition; `None`: there is none to print.
fn default_text(c: &ColumnDef, zone: &TimeZone) -> Option<String> {
    match &c.default {
        _ if c.generated.is_some() => None,
        ColumnDefault::Expr(e) => Some(format!("({})", e.text)),
        ColumnDefault::None => None,
        ColumnDefault::Null if c.ty.is_blob() || !c.nullable => None,
        ColumnDefault::Null => Some("NULL".into()),
        ColumnDefault::CurrentTimestamp(fsp) => Some(now_text(*fsp)),
        ColumnDefault::Literal(value) => Some(match (&c.ty.kind, value) {
            (TypeKind::Bit(_), nfold_types::Value::UInt(n)) => format!("b'{n:b}'"),
            _ => default_value_text(c, zone)
                .map(|t| quote_string(&t))
                .unwrap_or_default(),
        }),
    }
}

/// The default in `information_schema` and DESCRIBE; `None` is NULL.
pub fn default_value_text(c: &ColumnDef, zone: &TimeZone) -> Option<String> {
    match &c.default {
        ColumnDefault::None | ColumnDefault::Null => None,
        ColumnDefault::CurrentTimestamp(fsp) => Some(now_text(*fsp)),
        ColumnDefault::Expr(e) => Some(nfold_sql::stored::escaped(&e.text)),
        ColumnDefault::Literal(value) => {
            if let (TypeKind::Bit(_), nfold_types::Value::UInt(n)) = (&c.ty.kind, value) {
                return Some(format!("b'{n:b}'"));
            }
            let mut bytes = Vec::new();
            wire::display_text(value.as_ref(), &c.ty, zone, &mut bytes);
            let mut utf8 = Vec::new();
            nfold_types::charset::convert(
                c.ty.charset(),
                &nfold_types::charset::UTF8MB4,
                &bytes,
                &mut utf8,
            );
            Some(String::from_utf8_lossy(&utf8).into_owned())
        }
    }
}

fn index(def: &TableDef, i: &IndexDef, quoting: Quoting) -> String {
    let part = |p: &nfold_catalog::IndexPart| {
        let prefix = p.prefix_len.map(|n| format!("({n})")).unwrap_or_default();
        let column = &def.columns[p.column];
        let target = match (&column.generated, column.visibility) {
            (Some(g), Visibility::Hidden) => format!("({})", g.expr.text),
            _ => quoting.name(&column.name),
        };
        format!("{target}{prefix}{}", if p.desc { " DESC" } else { "" })
    };
    let parts: Vec<String> = i.shown_parts().iter().map(part).collect();
    let head = match i.kind {
        IndexKind::Primary | IndexKind::HiddenRowId => "PRIMARY KEY".into(),
        IndexKind::Unique => format!("UNIQUE KEY {}", quoting.name(&i.name)),
        IndexKind::Secondary => format!("KEY {}", quoting.name(&i.name)),
        IndexKind::Fulltext(_) => format!("FULLTEXT KEY {}", quoting.name(&i.name)),
    };
    let comment = if i.comment.is_empty() {
        String::new()
    } else {
        format!(" COMMENT {}", quote_string(&i.comment))
    };
    let using = if i.btree { " USING BTREE" } else { "" };
    let visible = if i.visible {
        ""
    } else {
        " /*!80000 INVISIBLE */"
    };
    let parser = match i.fulltext() {
        Some(options) if options.ngram_chars > 0 => " /*!50100 WITH PARSER `ngram` */ ",
        _ => "",
    };
    let parts = parts.join(",");
    format!("{head} ({parts}){using}{comment}{parser}{visible}")
}
