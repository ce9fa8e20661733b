//! GRANT and REVOKE of privileges on routines. There are no stored routines yet, so they check the
//! statement and end with the error for a routine, or a grant, that does not exist.

use nfold_catalog::Privileges;
use nfold_sql::ast::{self, Grant, ObjectName, Revoke, RoutineKind};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::session::Session;
use crate::session::response::Response;

impl Session {
    /// GRANT ON FUNCTION or PROCEDURE.
    ///
    /// # Errors
    /// 1046, 1370, 1144; otherwise 1305.
    pub(super) fn grant_on_routine(
        &mut self,
        g: &Grant,
        (kind, routine): (RoutineKind, &ObjectName),
    ) -> Result<Response, SqlError> {
        self.may_grant_on_routine(&g.privileges, routine)?;
        let kind = match kind {
            RoutineKind::Function => "FUNCTION",
            RoutineKind::Procedure => "PROCEDURE",
        };
        let code = ErrorCode::ER_SP_DOES_NOT_EXIST;
        Err(SqlError::new(code, &[&kind, &routine.name.as_str()]))
    }

    /// REVOKE ON FUNCTION or PROCEDURE.
    ///
    /// # Errors
    /// 1046, 1370, 1144, 1227; otherwise 1403, which IF EXISTS makes a warning.
    pub(super) fn revoke_on_routine(
        &mut self,
        r: &Revoke,
        routine: &ObjectName,
    ) -> Result<Response, SqlError> {
        self.may_grant_on_routine(&r.privileges, routine)?;
        let accounts = self.server.engine.catalog().accounts();
        for name in &r.from {
            let id = self.named(name);
            self.need_system_user(&accounts, &id)?;
            let code = ErrorCode::ER_NONEXISTING_PROC_GRANT;
            let none = SqlError::new(code, &[&id.0, &id.1, &routine.name.as_str()]);
            match r.if_exists {
                true => self.conditions.push_error(Level::Warning, &none),
                false => return Err(none),
            }
        }
        Ok(Response::ok())
    }

    /// Granting and revoking needs GRANT OPTION and the privileges themselves on the database.
    fn may_grant_on_routine(
        &self,
        list: &ast::Privileges,
        routine: &ObjectName,
    ) -> Result<(), SqlError> {
        let schema = self.schema_of(routine)?;
        let all = [
            (Privileges::EXECUTE, "execute"),
            (Privileges::ALTER_ROUTINE, "alter routine"),
        ];
        let names = |name: &str| match list {
            ast::Privileges::All => true,
            ast::Privileges::List(list) => list
                .iter()
                .any(|(listed, _)| listed.eq_ignore_ascii_case(name)),
            ast::Privileges::Roles(_) | ast::Privileges::Proxy => false,
        };
        let wanted = all.into_iter().filter(|(_, name)| names(name));
        let held = self.rights.on_database(&schema);
        let mut missing = wanted
            .chain([(Privileges::GRANT_OPTION, "grant")])
            .filter(|(privilege, _)| !held.contains(*privilege));
        if let Some((_, command)) = missing.next() {
            let account = self.rights.account();
            let routine = format!("{schema}.{}", routine.name.as_str());
            let code = ErrorCode::ER_PROCACCESS_DENIED_ERROR;
            let denied = [
                &command as _,
                &account.user as _,
                &account.host as _,
                &routine as _,
            ];
            return Err(SqlError::new(code, &denied));
        }
        let ast::Privileges::List(list) = list else {
            return Ok(());
        };
        let on_routines = |name: &str| {
            let mut names = all.iter().map(|(_, name)| *name).chain(["usage"]);
            names.any(|known| name.eq_ignore_ascii_case(known))
        };
        match list
            .iter()
            .all(|(name, columns)| columns.is_empty() && on_routines(name))
        {
            true => Ok(()),
            false => Err(SqlError::new(ErrorCode::ER_ILLEGAL_GRANT_FOR_TABLE, &[])),
        }
    }
}
