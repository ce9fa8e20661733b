//! Which databases, tables and accounts a DDL statement changes.

use super::{AlterAction, ObjectName, RoleStatement, Statement};

/// The database and the name of a table or view. `current` is the current database.
fn pair<'a>(name: &'a ObjectName, current: &'a str) -> (&'a str, &'a str) {
    let database = name.schema.as_ref().map_or(current, |s| s.value.as_str());
    (database, name.name.value.as_str())
}

impl Statement {
    /// The databases of the objects that a statement changes. Accounts are in none. `current` is
    /// the current database.
    pub fn changed_databases<'a>(&'a self, current: &'a str) -> Vec<&'a str> {
        if let Some(database) = self.changed_database(current) {
            return vec![database];
        }
        let tables = self.changed_tables(current).into_iter();
        let mut databases: Vec<_> = tables.map(|(database, _)| database).collect();
        if let Statement::AlterTable(alter) = self {
            databases.extend(alter.actions.iter().filter_map(|action| match action {
                AlterAction::Rename(to) => Some(pair(to, current).0),
                _ => None,
            }));
        }
        databases
    }

    /// Whether a statement changes accounts, their privileges or their roles.
    pub fn changes_accounts(&self) -> bool {
        use Statement::*;
        matches!(
            self,
            CreateUser(_)
                | AlterUser(_)
                | SetPassword(_)
                | DropUser { .. }
                | RenameUser(_)
                | Grant(_)
                | Revoke(_)
                | Role(
                    RoleStatement::Create { .. }
                        | RoleStatement::Drop { .. }
                        | RoleStatement::SetDefault { .. },
                )
        )
    }

    /// The database that CREATE, ALTER or DROP DATABASE is about.
    pub fn changed_database<'a>(&'a self, current: &'a str) -> Option<&'a str> {
        match self {
            Statement::CreateDatabase(create) => Some(&create.name.value),
            Statement::AlterDatabase(alter) => {
                Some(alter.name.as_ref().map_or(current, |name| &name.value))
            }
            Statement::DropDatabase { name, .. } => Some(&name.value),
            _ => None,
        }
    }

    /// The tables and views that a statement changes, in its order: their databases and names. The
    /// new name that ALTER TABLE ... RENAME makes is not among them. `current` is the current
    /// database.
    pub fn changed_tables<'a>(&'a self, current: &'a str) -> Vec<(&'a str, &'a str)> {
        use Statement::*;
        let of = |name: &'a ObjectName| pair(name, current);
        match self {
            CreateTable(create) => vec![of(&create.name)],
            DropTable(drop) => drop.names.iter().map(of).collect(),
            CreateView(create) => vec![of(&create.name)],
            DropView { names, .. } => names.iter().map(of).collect(),
            Truncate(name) => vec![of(name)],
            RenameTable(names) => (names.iter())
                .flat_map(|(from, to)| [of(from), of(to)])
                .collect(),
            AlterTable(alter) => vec![of(&alter.name)],
            CreateIndex(create) => vec![of(&create.table)],
            DropIndex { table, .. } => vec![of(table)],
            TableMaintenance(maintenance) => maintenance.tables.iter().map(of).collect(),
            _ => Vec::new(),
        }
    }
}
