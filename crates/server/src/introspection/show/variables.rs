//! SHOW VARIABLES.

use nfold_sql::ast::{ShowFilter, VarScope};
use nfold_types::{SqlError, Value};

use super::filter;
use crate::session::Session;
use crate::session::response::{Response, RowSet};
use crate::session::vars::{NO_VARIABLE, Scope, definitions};

impl Session {
    pub(super) fn show_variables(
        &mut self,
        scope: VarScope,
        wanted: Option<&ShowFilter>,
    ) -> Result<Response, SqlError> {
        let global = scope == VarScope::Global;
        let mut set = RowSet::of_text(&[("Variable_name", 64), ("Value", 2048)]);
        for (at, def) in definitions().iter().enumerate() {
            if global && def.scope == Scope::Session
                || def.name == NO_VARIABLE
                || !self.env.sees_var(at)
            {
                continue;
            }
            let value = self.env.read_var(at, global).show();
            set.push(vec![Value::from(def.name), Value::from(value)]);
        }
        filter::apply(&mut set, wanted, 0);
        Ok(Response::Rows(set))
    }
}
