//! Sets of privileges: the static ones as bits, the dynamic ones by name.
//!
//! Source: MySQL manual, "Privileges Provided by MySQL".

/// A set of static privileges, one bit each. GRANT OPTION is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Privileges(pub u64);

/// The levels on which a privilege can be granted, besides `*.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    pub database: bool,
    pub table: bool,
    pub column: bool,
    pub routine: bool,
}

macro_rules! privileges {
    ($($bit:literal $name:ident $text:literal $levels:ident;)*) => {
        impl Privileges {
            $(pub const $name: Privileges = Privileges(1 << $bit);)*
            /// Every privilege in the order of SHOW GRANTS: bit, SQL name, levels.
            pub const LIST: &'static [(Privileges, &'static str, Levels)] =
                &[$((Privileges::$name, $text, Levels::$levels)),*];
        }
    };
}

impl Levels {
    const fn new(database: bool, table: bool, column: bool, routine: bool) -> Levels {
        Levels {
            database,
            table,
            column,
            routine,
        }
    }
    const GLOBAL: Levels = Levels::new(false, false, false, false);
    const DATABASE: Levels = Levels::new(true, false, false, false);
    const TABLE: Levels = Levels::new(true, true, false, false);
    const COLUMN: Levels = Levels::new(true, true, true, false);
    const ROUTINE: Levels = Levels::new(true, false, false, true);
    const EVERY: Levels = Levels::new(true, true, false, true);
}

privileges! {
    0 SELECT "SELECT" COLUMN;
    1 INSERT "INSERT" COLUMN;
    2 UPDATE "UPDATE" COLUMN;
    3 DELETE "DELETE" TABLE;
    4 CREATE "CREATE" TABLE;
    5 DROP "DROP" TABLE;
    6 RELOAD "RELOAD" GLOBAL;
    7 SHUTDOWN "SHUTDOWN" GLOBAL;
    8 PROCESS "PROCESS" GLOBAL;
    9 FILE "FILE" GLOBAL;
    10 REFERENCES "REFERENCES" COLUMN;
    11 INDEX "INDEX" TABLE;
    12 ALTER "ALTER" TABLE;
    13 SHOW_DATABASES "SHOW DATABASES" GLOBAL;
    14 SUPER "SUPER" GLOBAL;
    15 CREATE_TEMPORARY_TABLES "CREATE TEMPORARY TABLES" DATABASE;
    16 LOCK_TABLES "LOCK TABLES" DATABASE;
    17 EXECUTE "EXECUTE" ROUTINE;
    18 REPLICATION_SLAVE "REPLICATION SLAVE" GLOBAL;
    19 REPLICATION_CLIENT "REPLICATION CLIENT" GLOBAL;
    20 CREATE_VIEW "CREATE VIEW" TABLE;
    21 SHOW_VIEW "SHOW VIEW" TABLE;
    22 CREATE_ROUTINE "CREATE ROUTINE" DATABASE;
    23 ALTER_ROUTINE "ALTER ROUTINE" ROUTINE;
    24 CREATE_USER "CREATE USER" GLOBAL;
    25 EVENT "EVENT" DATABASE;
    26 TRIGGER "TRIGGER" TABLE;
    27 CREATE_TABLESPACE "CREATE TABLESPACE" GLOBAL;
    28 CREATE_ROLE "CREATE ROLE" GLOBAL;
    29 DROP_ROLE "DROP ROLE" GLOBAL;
    30 GRANT_OPTION "GRANT OPTION" EVERY;
}

/// The dynamic privileges, in the order of their names.
pub const DYNAMIC: [&str; 42] = [
    "ALLOW_NONEXISTENT_DEFINER",
    "APPLICATION_PASSWORD_ADMIN",
    "AUDIT_ABORT_EXEMPT",
    "AUDIT_ADMIN",
    "AUTHENTICATION_POLICY_ADMIN",
    "BACKUP_ADMIN",
    "BINLOG_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
    "CLONE_ADMIN",
    "CONNECTION_ADMIN",
    "CREATE_SPATIAL_REFERENCE_SYSTEM",
    "ENCRYPTION_KEY_ADMIN",
    "FIREWALL_EXEMPT",
    "FLUSH_OPTIMIZER_COSTS",
    "FLUSH_PRIVILEGES",
    "FLUSH_STATUS",
    "FLUSH_TABLES",
    "FLUSH_USER_RESOURCES",
    "GROUP_REPLICATION_ADMIN",
    "GROUP_REPLICATION_STREAM",
    "INNODB_REDO_LOG_ARCHIVE",
    "INNODB_REDO_LOG_ENABLE",
    "MANAGE_DATA_MASKING_POLICY",
    "OPTIMIZE_LOCAL_TABLE",
    "PASSWORDLESS_USER_ADMIN",
    "PERSIST_RO_VARIABLES_ADMIN",
    "REPLICATION_APPLIER",
    "REPLICATION_SLAVE_ADMIN",
    "RESOURCE_GROUP_ADMIN",
    "RESOURCE_GROUP_USER",
    "ROLE_ADMIN",
    "SENSITIVE_VARIABLES_OBSERVER",
    "SERVICE_CONNECTION_ADMIN",
    "SESSION_VARIABLES_ADMIN",
    "SET_ANY_DEFINER",
    "SHOW_ROUTINE",
    "SYSTEM_USER",
    "SYSTEM_VARIABLES_ADMIN",
    "TABLE_ENCRYPTION_ADMIN",
    "TELEMETRY_LOG_ADMIN",
    "TRANSACTION_GTID_TAG",
    "XA_RECOVER_ADMIN",
];

/// The dynamic privilege of this name, in any case.
pub fn dynamic_privilege(name: &str) -> Option<&'static str> {
    DYNAMIC
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name))
        .copied()
}

impl Privileges {
    pub const NONE: Privileges = Privileges(0);

    /// The meaning of `ALL PRIVILEGES` on `*.*` (without GRANT OPTION).
    pub fn all_global() -> Self {
        Self::all_on(|_| true)
    }

    /// The meaning of `ALL PRIVILEGES` on one database (without GRANT OPTION).
    pub fn all_database() -> Self {
        Self::all_on(|levels| levels.database)
    }

    /// The meaning of `ALL PRIVILEGES` on one table (without GRANT OPTION).
    pub fn all_table() -> Self {
        Self::all_on(|levels| levels.table)
    }

    /// The privileges that columns can have.
    pub fn all_column() -> Self {
        Self::all_on(|levels| levels.column)
    }

    fn all_on(wanted: impl Fn(&Levels) -> bool) -> Self {
        let all = Self::LIST
            .iter()
            .filter(|(p, _, levels)| wanted(levels) && *p != Self::GRANT_OPTION);
        Privileges(all.fold(0, |bits, (p, _, _)| bits | p.0))
    }

    /// The privilege of this SQL name, in any case, and where it can be granted. `None` if there is
    /// no such privilege.
    pub fn by_name(name: &str) -> Option<(Privileges, Levels)> {
        Self::LIST
            .iter()
            .find(|(_, text, _)| text.eq_ignore_ascii_case(name))
            .map(|&(p, _, levels)| (p, levels))
    }

    /// Whether every privilege of `wanted` is here.
    pub fn contains(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Whether any privilege of `wanted` is here.
    pub fn has_any(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 != 0
    }

    /// Both sets together.
    pub fn union(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// The privileges that both sets have.
    pub fn common(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// This set without `other`.
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names as SHOW GRANTS lists them, without GRANT OPTION.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let listed = Self::LIST
            .iter()
            .filter(move |(p, ..)| self.contains(*p) && *p != Self::GRANT_OPTION);
        listed.map(|(_, name, _)| *name)
    }

    /// The names as the message of error 1142 lists them: GRANT stands behind FILE.
    pub fn names_in_errors(self) -> String {
        let before = |p: Privileges| p.0 <= Self::FILE.0;
        let grant = self.contains(Self::GRANT_OPTION).then_some("GRANT");
        let of = |early: bool| {
            let listed = Self::LIST.iter().filter(move |(p, ..)| {
                self.contains(*p) && *p != Self::GRANT_OPTION && before(*p) == early
            });
            listed.map(|(_, name, _)| *name)
        };
        let names: Vec<&str> = of(true).chain(grant).chain(of(false)).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_all_privileges() {
        assert!(!Privileges::all_database().contains(Privileges::RELOAD));
        assert!(Privileges::all_global().contains(Privileges::RELOAD));
        assert!(!Privileges::all_global().contains(Privileges::GRANT_OPTION));
        assert!(!Privileges::all_table().contains(Privileges::LOCK_TABLES));
        let (p, levels) = Privileges::by_name("show databases").unwrap();
        assert_eq!((p, levels.database), (Privileges::SHOW_DATABASES, false));
        let columns: Vec<_> = Privileges::all_column().names().collect();
        assert_eq!(columns, ["SELECT", "INSERT", "UPDATE", "REFERENCES"]);
        assert!(DYNAMIC.is_sorted());
    }

    #[test]
    fn errors_list_grant_behind_file() {
        let set = Privileges::SELECT
            .union(Privileges::GRANT_OPTION)
            .union(Privileges::INDEX);
        assert_eq!(set.names_in_errors(), "SELECT, GRANT, INDEX");
    }
}
