//! The kinds of statements that SHOW STATUS counts (`Com_%`).

use nfold_observe::StatementKind as Kind;
use nfold_sql::ast::{
    ComponentStatement, CreateUser, Delete, EngineInfo, Handler, HandlerAction, Insert,
    InsertSource, MaintenanceKind, Privileges, Revoke, RoleStatement, Show, Statement, TableRef,
    Update, Xa,
};

/// The kind of a statement; EXPLAIN has that of the explained one. `None`: it is not counted.
pub(crate) fn kind_of(statement: &Statement) -> Option<Kind> {
    use Statement as S;
    Some(match statement {
        S::Query(_) => Kind::Select,
        S::Insert(insert) => insert_kind(insert),
        S::Update(update) => update_kind(update),
        S::Delete(delete) => delete_kind(delete),
        S::LoadData(_) => Kind::Load,
        S::Do(_) => Kind::Do,
        S::CreateDatabase(_) => Kind::CreateDb,
        S::AlterDatabase(_) => Kind::AlterDb,
        S::DropDatabase { .. } => Kind::DropDb,
        S::CreateTable(_) => Kind::CreateTable,
        S::DropTable(_) => Kind::DropTable,
        S::CreateView(_) => Kind::CreateView,
        S::DropView { .. } => Kind::DropView,
        S::Truncate(_) => Kind::Truncate,
        S::RenameTable(_) => Kind::RenameTable,
        S::AlterTable(_) => Kind::AlterTable,
        S::CreateIndex(_) => Kind::CreateIndex,
        S::DropIndex { .. } => Kind::DropIndex,
        S::Begin(_) => Kind::Begin,
        S::Commit(_) => Kind::Commit,
        S::Rollback(_) => Kind::Rollback,
        S::RollbackTo(_) => Kind::RollbackToSavepoint,
        S::Savepoint(_) => Kind::Savepoint,
        S::ReleaseSavepoint(_) => Kind::ReleaseSavepoint,
        S::Xa(xa) => match **xa {
            Xa::Start(..) => Kind::XaStart,
            Xa::End { .. } => Kind::XaEnd,
            Xa::Prepare(_) => Kind::XaPrepare,
            Xa::Commit { .. } => Kind::XaCommit,
            Xa::Rollback(_) => Kind::XaRollback,
            Xa::Recover { .. } => Kind::XaRecover,
        },
        S::LockTables(_) => Kind::LockTables,
        S::UnlockTables => Kind::UnlockTables,
        S::LockInstance => Kind::LockInstance,
        S::UnlockInstance => Kind::UnlockInstance,
        S::Set(_) => Kind::SetOption,
        S::ResetPersist { .. } | S::ResetReplica { .. } | S::ResetBinaryLogs(_) => Kind::Reset,
        S::Use(_) => Kind::ChangeDb,
        S::Kill { .. } => Kind::Kill,
        S::Prepare { .. } => Kind::PrepareSql,
        S::Execute { .. } => Kind::ExecuteSql,
        S::Deallocate(_) => Kind::DeallocSql,
        S::Signal(_) => Kind::Signal,
        S::Resignal => Kind::Resignal,
        S::GetDiagnostics(_) => Kind::GetDiagnostics,
        S::Handler(handler) => handler_kind(handler),
        S::Show(show) => return show_kind(show),
        S::Describe { .. } => Kind::ShowFields,
        S::Explain { statement, .. } => return kind_of(statement),
        S::ExplainConnection(..) => Kind::ExplainOther,
        S::TableMaintenance(maintenance) => match maintenance.kind {
            MaintenanceKind::Check => Kind::Check,
            MaintenanceKind::Analyze => Kind::Analyze,
            MaintenanceKind::Optimize => Kind::Optimize,
            MaintenanceKind::Repair => Kind::Repair,
            MaintenanceKind::Checksum => Kind::Checksum,
        },
        S::Flush(_) => Kind::Flush,
        S::ChangeSource(_) => Kind::ChangeReplicationSource,
        S::ChangeFilter(_) => Kind::ChangeReplicationFilter,
        S::StartReplica { .. } => Kind::ReplicaStart,
        S::StopReplica(_) => Kind::ReplicaStop,
        S::Binlog(_) => Kind::Binlog,
        S::PurgeTo(_) => Kind::Purge,
        S::PurgeBefore(_) => Kind::PurgeBeforeDate,
        S::CreateUser(_) => Kind::CreateUser,
        S::AlterUser(change) => alter_user_kind(change),
        S::SetPassword(_) => Kind::SetPassword,
        S::DropUser { .. } => Kind::DropUser,
        S::RenameUser(_) => Kind::RenameUser,
        S::Grant(grant) => match grant.privileges {
            Privileges::Roles(_) => Kind::GrantRoles,
            _ => Kind::Grant,
        },
        S::Revoke(revoke) => revoke_kind(revoke),
        S::Role(role) => match role {
            RoleStatement::Create { .. } => Kind::CreateRole,
            RoleStatement::Drop { .. } => Kind::DropRole,
            RoleStatement::Set(_) => Kind::SetRole,
            RoleStatement::SetDefault { .. } => Kind::AlterUserDefaultRole,
        },
        S::Component(component) => match component {
            ComponentStatement::Install { .. } => Kind::InstallComponent,
            ComponentStatement::Uninstall(_) => Kind::UninstallComponent,
        },
        S::Empty => Kind::EmptyQuery,
        S::Unsupported { .. } => return None,
    })
}

fn insert_kind(insert: &Insert) -> Kind {
    match (&insert.source, insert.replace) {
        (InsertSource::File { .. }, _) => Kind::Load,
        (InsertSource::Query(_), false) => Kind::InsertSelect,
        (InsertSource::Query(_), true) => Kind::ReplaceSelect,
        (_, false) => Kind::Insert,
        (_, true) => Kind::Replace,
    }
}

fn update_kind(update: &Update) -> Kind {
    match update.tables.as_slice() {
        [TableRef::Join(_)] | [_, _, ..] => Kind::UpdateMulti,
        _ => Kind::Update,
    }
}

fn delete_kind(delete: &Delete) -> Kind {
    match delete.targets.is_empty() {
        true => Kind::Delete,
        false => Kind::DeleteMulti,
    }
}

fn handler_kind(handler: &Handler) -> Kind {
    match handler.action {
        HandlerAction::Open { .. } => Kind::HaOpen,
        HandlerAction::Close => Kind::HaClose,
        HandlerAction::Read(_) => Kind::HaRead,
    }
}

fn alter_user_kind(change: &CreateUser) -> Kind {
    match change.default_roles {
        Some(_) => Kind::AlterUserDefaultRole,
        None => Kind::AlterUser,
    }
}

fn revoke_kind(revoke: &Revoke) -> Kind {
    match revoke.privileges {
        _ if revoke.everything => Kind::RevokeAll,
        Privileges::Roles(_) => Kind::RevokeRoles,
        _ => Kind::Revoke,
    }
}

fn show_kind(show: &Show) -> Option<Kind> {
    Some(match show {
        Show::Databases { .. } => Kind::ShowDatabases,
        Show::Tables { .. } => Kind::ShowTables,
        Show::TableStatus { .. } => Kind::ShowTableStatus,
        Show::Columns { .. } => Kind::ShowFields,
        Show::Index { .. } => Kind::ShowKeys,
        Show::CreateTable(_) | Show::CreateView(_) => Kind::ShowCreateTable,
        Show::CreateDatabase { .. } => Kind::ShowCreateDb,
        Show::CreateUser(_) => Kind::ShowCreateUser,
        Show::Variables { .. } => Kind::ShowVariables,
        Show::Status { .. } => Kind::ShowStatus,
        Show::ProcessList { .. } => Kind::ShowProcesslist,
        Show::Warnings(_) => Kind::ShowWarnings,
        Show::Errors(_) => Kind::ShowErrors,
        // They read variables.
        Show::WarningCount | Show::ErrorCount => Kind::Select,
        Show::Engines => Kind::ShowStorageEngines,
        Show::Engine { what, .. } => match what {
            EngineInfo::Status => Kind::ShowEngineStatus,
            EngineInfo::Mutex => Kind::ShowEngineMutex,
            EngineInfo::Logs => Kind::ShowEngineLogs,
            EngineInfo::Contention => return None,
        },
        Show::Grants(..) => Kind::ShowGrants,
        Show::Privileges => Kind::ShowPrivileges,
        Show::CharacterSet { .. } => Kind::ShowCharsets,
        Show::Collation { .. } => Kind::ShowCollations,
        Show::Plugins => Kind::ShowPlugins,
        Show::OpenTables { .. } => Kind::ShowOpenTables,
        Show::Triggers { .. } => Kind::ShowTriggers,
        Show::Events { .. } => Kind::ShowEvents,
        Show::FunctionStatus { .. } => Kind::ShowFunctionStatus,
        Show::ProcedureStatus { .. } => Kind::ShowProcedureStatus,
        Show::BinaryLogStatus => Kind::ShowBinaryLogStatus,
        Show::BinaryLogs => Kind::ShowBinlogs,
        Show::ReplicaStatus(_) => Kind::ShowReplicaStatus,
        Show::Replicas => Kind::ShowReplicas,
        Show::BinlogEvents { .. } => Kind::ShowBinlogEvents,
        Show::RelayLogEvents => Kind::ShowRelaylogEvents,
        Show::Profiles => Kind::ShowProfiles,
        Show::Unsupported(_) => return None,
    })
}
