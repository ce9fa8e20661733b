//! INSTALL COMPONENT and UNINSTALL COMPONENT.
//!
//! The only component is `validate_password`. Another one is error 1126, as in a MySQL whose
//! directory of plugins lacks its library.

use nfold_catalog::Privileges;
use nfold_exec::ExecCx;
use nfold_sql::ast::{ComponentStatement, ComponentVariable, Expr};
use nfold_types::{ErrorCode, SqlError, Value};

use crate::config::components::{VALIDATE_PASSWORD, VALIDATE_PASSWORD_URN, is_component_variable};
use crate::password_policy::Words;
use crate::session::Session;
use crate::session::cx::apart;
use crate::session::response::Response;
use crate::session::vars::{self, Assigned, check};
use crate::unix_time::unix_time;

/// What `dlopen` says of a library that is not there.
const NO_FILE: i32 = 2;

impl Session {
    /// Runs the statement.
    ///
    /// # Errors
    /// 1142 without the privilege on `mysql.component`, 1126 and 3527 to 3529 for what cannot be
    /// installed, 3537 for what is not installed, 4160 and 4161 and those of SET for a variable.
    pub(super) fn component(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &ComponentStatement,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        match statement {
            ComponentStatement::Install { urns, variables } => {
                self.install(cx, urns, variables, text)?;
            }
            ComponentStatement::Uninstall(urns) => self.uninstall(cx, urns)?,
        }
        Ok(Response::ok())
    }

    fn install(
        &mut self,
        cx: &mut dyn ExecCx,
        urns: &[String],
        variables: &[ComponentVariable],
        text: &[u8],
    ) -> Result<(), SqlError> {
        self.rights
            .need_table(Privileges::INSERT, "mysql", "component")?;
        for urn in urns {
            self.check_urn(urn)?;
        }
        let mut values = Vec::new();
        for variable in variables {
            values.push((variable.persist, self.component_value(cx, variable, text)?));
        }
        let server = self.server.clone();
        let list = urns.to_vec();
        let installed = apart(cx, move || {
            server.components.install(&list).inspect(|already| {
                if already.is_none() {
                    server.globals.reset_all(&server.component_defaults);
                }
            })
        })?;
        match installed {
            Ok(None) => {}
            Ok(Some(urn)) => {
                return Err(SqlError::new(ErrorCode::ER_COMPONENTS_CANT_LOAD, &[&urn]));
            }
            Err(e) => return Err(not_stored(urns, &e)),
        }
        self.take_persisted();
        for (persist, assigned) in &values {
            if *persist {
                self.persist(assigned, false)?;
            } else {
                let by = self.set_by();
                self.env.globals.set_all_by(assigned, Some(&by));
            }
        }
        let fresh = Words::of_now(unix_time().as_secs());
        self.server.take_password_words(Some(fresh));
        self.password_rules_changed(cx, &self.server.component_defaults.clone())
    }

    fn uninstall(&mut self, cx: &mut dyn ExecCx, urns: &[String]) -> Result<(), SqlError> {
        self.rights
            .need_table(Privileges::DELETE, "mysql", "component")?;
        let server = self.server.clone();
        let list = urns.to_vec();
        match apart(cx, move || server.components.uninstall(&list))? {
            Ok(None) => Ok(()),
            Ok(Some(urn)) => {
                let code = ErrorCode::ER_COMPONENTS_UNLOAD_NOT_LOADED;
                Err(SqlError::new(code, &[&urn]))
            }
            Err(e) => Err(not_stored(urns, &e)),
        }
    }

    /// The errors of a URN that names no component of this server.
    fn check_urn(&self, urn: &str) -> Result<(), SqlError> {
        let Some((scheme, name)) = urn.split_once("://") else {
            return Err(SqlError::new(ErrorCode::ER_COMPONENTS_NO_SCHEME, &[&urn]));
        };
        if scheme != "file" {
            let code = ErrorCode::ER_COMPONENTS_NO_SCHEME_SERVICE;
            return Err(SqlError::new(code, &[&scheme, &urn]));
        }
        if name.contains('/') {
            return Err(SqlError::new(ErrorCode::ER_COMPONENTS_CANT_LOAD, &[&urn]));
        }
        if urn == VALIDATE_PASSWORD_URN {
            return Ok(());
        }
        let library = format!("{}{name}.so", self.server.text("plugin_dir"));
        let why = format!("{library}: cannot open shared object file: No such file or directory");
        let code = ErrorCode::ER_CANT_OPEN_LIBRARY;
        Err(SqlError::new(code, &[&library, &NO_FILE, &why]))
    }

    /// What a variable in the statement is set to.
    fn component_value(
        &mut self,
        cx: &mut dyn ExecCx,
        variable: &ComponentVariable,
        text: &[u8],
    ) -> Result<Assigned, SqlError> {
        let (_, name) = (variable.name.split_once('.')).unwrap_or(("", &variable.name));
        let full = match variable.name.contains('.') {
            true => variable.name.to_ascii_lowercase(),
            false => format!("{VALIDATE_PASSWORD}.{}", name.to_ascii_lowercase()),
        };
        let at = vars::find(&full)
            .ok()
            .filter(|_| is_component_variable(&full));
        let at = at.ok_or_else(|| {
            let code = ErrorCode::ER_INSTALL_COMPONENT_SET_UNUSED_VALUE;
            SqlError::new(code, &[&VALIDATE_PASSWORD.replace('_', "-"), &name])
        })?;
        let value = match &variable.value {
            // A bare word is a string.
            Expr::Column(c) if c.table.is_none() => Value::from(c.name.as_str()),
            e => self.evaluate(cx, e, text)?,
        };
        if value.is_null() {
            let code = ErrorCode::ER_INSTALL_COMPONENT_SET_NULL_VALUE;
            return Err(SqlError::new(code, &[&full]));
        }
        // As in MySQL, a value beyond the range brings no warning here.
        check(&vars::definitions()[at], &value, &mut Default::default())
    }

    /// Sets the variables of components to the values that SET PERSIST has stored.
    fn take_persisted(&self) {
        for (name, entry) in self.server.persisted.entries() {
            if let Ok(at) = vars::find(&name)
                && is_component_variable(&name)
                && let Some(value) = vars::of_stored(at, &entry.value)
            {
                (self.env.globals).set_all_by(&[(at, value)], Some(&entry.by));
            }
        }
    }

    /// Called when global variables were set: if they are rules for passwords, makes them
    /// consistent, and reads the dictionary if its file was among them.
    ///
    /// # Errors
    /// The statement was interrupted.
    pub(super) fn password_rules_changed(
        &self,
        cx: &mut dyn ExecCx,
        assigned: &[(usize, vars::VarValue)],
    ) -> Result<(), SqlError> {
        let mut names = assigned.iter().map(|(at, _)| vars::definitions()[*at].name);
        if !names.clone().any(is_component_variable) {
            return Ok(());
        }
        self.server.raise_password_length();
        if names.any(|name| name == "validate_password.dictionary_file") {
            let server = self.server.clone();
            let words = apart(cx, move || server.read_password_words())?;
            self.server.take_password_words(words);
        }
        Ok(())
    }
}

/// Error 3544: the list of components cannot be written.
fn not_stored(urns: &[String], e: &std::io::Error) -> SqlError {
    let code = ErrorCode::ER_COMPONENT_MANIPULATE_ROW_FAILED;
    SqlError::new(
        code,
        &[&urns.join(","), &e.raw_os_error().unwrap_or_default()],
    )
}
