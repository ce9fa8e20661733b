//! The check before each statement of a session that has a [`Gate`](crate::session::gate::Gate).

use nfold_exec::ExecCx;
use nfold_sql::ast::Statement;
use nfold_sql::parser::parse;
use nfold_types::SqlError;

use crate::session::Session;

impl Session {
    /// Counts a statement, and refuses it if the session's account may not run it now.
    /// `sets_password`: whether it sets the password of that account.
    ///
    /// # Errors
    /// 1820 if the password has expired, 1226 after too many statements.
    #[inline]
    pub(crate) fn pass_gate(
        &mut self,
        sets_password: impl FnOnce(&Session) -> bool,
    ) -> Result<(), SqlError> {
        match self.gate.is_some() {
            true => self.pass_closed_gate(sets_password),
            false => Ok(()),
        }
    }

    /// As [`Self::pass_gate`], for a statement that runs now. It also has to be one that the
    /// session's branch and `gtid_next` allow. Returns whether `gtid_next` leaves it out.
    ///
    /// # Errors
    /// Also those of [`Self::pass_branch`] and [`Self::pass_next_gtid`].
    #[inline]
    pub(super) fn pass_gate_to_run(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<bool, SqlError> {
        match self.gate.is_some() {
            true => self.pass_closed_gate_to_run(cx, text),
            false => Ok(false),
        }
    }

    #[cold]
    fn pass_closed_gate_to_run(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<bool, SqlError> {
        self.pass_closed_gate(|s| s.sets_own_password(text))?;
        let passed = self.pass_branch(cx, text);
        let passed = passed.and_then(|()| self.pass_next_gtid(cx, text));
        if passed.is_err() {
            self.conditions.clear();
        }
        passed
    }

    #[cold]
    fn pass_closed_gate(
        &mut self,
        sets_password: impl FnOnce(&Session) -> bool,
    ) -> Result<(), SqlError> {
        let Some(mut gate) = self.gate.take() else {
            return Ok(());
        };
        let passed = gate.pass(|| sets_password(self));
        self.gate = Some(gate);
        if passed.is_err() {
            self.conditions.clear();
        }
        passed
    }

    /// As [`Self::pass_gate`], for a statement that changes data or definitions.
    ///
    /// # Errors
    /// 1226 after too many of them.
    #[inline]
    pub(crate) fn pass_update_gate(&mut self) -> Result<(), SqlError> {
        self.gate.as_mut().map_or(Ok(()), |gate| gate.pass_update())
    }

    /// Whether a text is ALTER USER or SET PASSWORD with a new password of the session's account.
    pub(crate) fn sets_own_password(&self, text: &[u8]) -> bool {
        match parse(text, self.env.vars.settings().lexing) {
            Ok(Statement::SetPassword(set)) => {
                let named = set.account.as_ref().map(|name| self.named(name));
                named.is_none_or(|id| self.is_own(&id))
            }
            Ok(Statement::AlterUser(alter)) => {
                let mut users = alter.users.iter();
                users.all(|u| u.auth.is_some() && self.is_own(&self.named(&u.account)))
            }
            _ => false,
        }
    }
}
