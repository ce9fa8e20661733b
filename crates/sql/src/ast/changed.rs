//! Which databases a DDL statement changes.

use super::{AlterAction, ObjectName, Statement};

impl Statement {
    /// The databases of the objects that a statement changes. Accounts are in none. `current` is
    /// the current database.
    pub fn changed_databases<'a>(&'a self, current: &'a str) -> Vec<&'a str> {
        use Statement::*;
        let of = |name: &'a ObjectName| name.schema.as_ref().map_or(current, |s| s.value.as_str());
        match self {
            CreateDatabase(create) => vec![&create.name.value],
            AlterDatabase(alter) => vec![alter.name.as_ref().map_or(current, |n| &n.value)],
            DropDatabase { name, .. } => vec![&name.value],
            CreateTable(create) => vec![of(&create.name)],
            DropTable(drop) => drop.names.iter().map(of).collect(),
            CreateView(create) => vec![of(&create.name)],
            DropView { names, .. } => names.iter().map(of).collect(),
            Truncate(name) => vec![of(name)],
            RenameTable(names) => (names.iter())
                .flat_map(|(from, to)| [of(from), of(to)])
                .collect(),
            AlterTable(alter) => {
                let renamed = alter.actions.iter().filter_map(|action| match action {
                    AlterAction::Rename(to) => Some(of(to)),
                    _ => None,
                });
                std::iter::once(of(&alter.name)).chain(renamed).collect()
            }
            CreateIndex(create) => vec![of(&create.table)],
            DropIndex { table, .. } => vec![of(table)],
            TableMaintenance(maintenance) => maintenance.tables.iter().map(of).collect(),
            _ => Vec::new(),
        }
    }
}
