//! The definitions of a server's tables and views.

use nfold_replica::Client;

use crate::error::CopyError;
use crate::literal::{ValueForm, name, quoted};

/// A column with values of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub data_type: String,
    pub form: ValueForm,
    /// The expression that selects its values.
    pub selected: String,
}

/// A table to copy or to compare.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub database: String,
    pub name: String,
    /// Without generated columns.
    pub columns: Vec<Column>,
    /// The columns of the primary key.
    pub key: Vec<String>,
    /// Estimates of the server.
    pub rows: u64,
    pub bytes: u64,
}

const INTEGERS: [&str; 5] = ["tinyint", "smallint", "mediumint", "int", "bigint"];

impl Table {
    /// The name for a statement.
    pub fn path(&self) -> String {
        format!("{}.{}", name(&self.database), name(&self.name))
    }

    /// The first column of the primary key, if it is an integer: ranges of it are chunks.
    pub fn range_column(&self) -> Option<String> {
        let first = self.key.first()?;
        let column = self.columns.iter().find(|c| c.name == *first)?;
        INTEGERS
            .contains(&column.data_type.as_str())
            .then(|| name(first))
    }

    /// The primary key for ORDER BY; empty without one.
    pub fn order(&self) -> String {
        let names: Vec<String> = self.key.iter().map(|n| name(n)).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", names.join(", ")),
        }
    }

    /// Conditions that divide the table into about `pieces`.
    pub fn chunks(&self, client: &mut Client, pieces: u64) -> Result<Vec<String>, CopyError> {
        let whole = vec![String::new()];
        let Some(column) = self.range_column().filter(|_| pieces > 1) else {
            return Ok(whole);
        };
        let sql = format!("SELECT MIN({column}), MAX({column}) FROM {}", self.path());
        let bounds: Vec<i128> = (client.query(&sql)?.into_iter().flatten().flatten())
            .filter_map(|text| text.parse().ok())
            .collect();
        let [first, last] = bounds[..] else {
            return Ok(whole);
        };
        let step = ((last - first) / i128::from(pieces)).max(1);
        let mut from = first;
        let mut chunks = Vec::new();
        while from + step <= last {
            let to = from + step;
            // Rows that others insert meanwhile are in the first chunk or in the last.
            let lower = match from == first {
                true => String::new(),
                false => format!("{column} >= {from} AND "),
            };
            chunks.push(format!(" WHERE {lower}{column} < {to}"));
            from = to;
        }
        chunks.push(match from == first {
            true => String::new(),
            false => format!(" WHERE {column} >= {from}"),
        });
        Ok(chunks)
    }
}

/// The base tables of a database.
pub(crate) fn tables(client: &mut Client, database: &str) -> Result<Vec<Table>, CopyError> {
    let schema = quoted(database);
    let found = client.query(&format!(
        "SELECT table_name, table_rows, data_length FROM information_schema.tables \
         WHERE table_schema = {schema} AND table_type = 'BASE TABLE' ORDER BY table_name"
    ))?;
    let mut tables = Vec::new();
    for row in found {
        let number = |n: usize| row.get(n)?.as_ref()?.parse().ok();
        tables.push(Table {
            database: database.to_owned(),
            name: row.first().cloned().flatten().unwrap_or_default(),
            columns: Vec::new(),
            key: Vec::new(),
            rows: number(1).unwrap_or(0),
            bytes: number(2).unwrap_or(0),
        });
    }
    let columns = client.query(&format!(
        "SELECT table_name, column_name, data_type, character_set_name \
         FROM information_schema.columns WHERE table_schema = {schema} AND \
         (extra NOT LIKE '%GENERATED%' OR extra LIKE '%DEFAULT_GENERATED%') \
         ORDER BY table_name, ordinal_position"
    ))?;
    for row in columns {
        let [Some(table), Some(column), Some(data_type), charset] = &row[..] else {
            continue;
        };
        let data_type = data_type.to_ascii_lowercase();
        let (form, selected) = ValueForm::of(&name(column), &data_type, charset.as_deref());
        if let Some(table) = tables.iter_mut().find(|t| t.name == *table) {
            table.columns.push(Column {
                name: column.clone(),
                data_type,
                form,
                selected,
            });
        }
    }
    let keys = client.query(&format!(
        "SELECT table_name, column_name FROM information_schema.statistics \
         WHERE table_schema = {schema} AND index_name = 'PRIMARY' ORDER BY table_name, seq_in_index"
    ))?;
    for row in keys {
        let [Some(table), Some(column)] = &row[..] else {
            continue;
        };
        if let Some(table) = tables.iter_mut().find(|t| t.name == *table) {
            table.key.push(column.clone());
        }
    }
    Ok(tables)
}

/// The views of a database.
pub(crate) fn views(client: &mut Client, database: &str) -> Result<Vec<String>, CopyError> {
    let sql = format!(
        "SELECT table_name FROM information_schema.views WHERE table_schema = {}",
        quoted(database)
    );
    Ok(client
        .query(&sql)?
        .into_iter()
        .flatten()
        .flatten()
        .collect())
}

/// The statement that SHOW CREATE returns. `what` is for example ``TABLE `d`.`t` ``.
pub(crate) fn definition(client: &mut Client, what: &str) -> Result<String, CopyError> {
    let rows = client
        .query(&format!("SHOW CREATE {what}"))
        .map_err(CopyError::at(format_args!("SHOW CREATE {what}")))?;
    let text = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(1));
    (text.flatten()).ok_or_else(|| CopyError(format!("SHOW CREATE {what} has no statement")))
}
