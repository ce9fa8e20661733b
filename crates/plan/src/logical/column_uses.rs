//! The columns that a statement names, collected while it is bound. A session compares them with
//! the account's privileges on columns. Columns that USING and NATURAL compare are not among them,
//! as in MySQL.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use nfold_catalog::ViewDef;

/// The way in which a statement uses columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnAccess {
    Read,
    /// `*` reads them.
    ReadAll,
    /// An item of the select list of a view that is being created.
    Show,
    Insert,
    /// INSERT without a list of columns.
    InsertAll,
    Update,
}

/// The view in whose query columns are named.
#[derive(Debug, PartialEq, Eq)]
pub struct ViewScope {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// User and host of the account with whose privileges it reads; `None`: the current account.
    pub definer: Option<(Box<str>, Box<str>)>,
}

impl ViewScope {
    /// The scope of a view that is named in `around`, or in the statement itself.
    pub fn of(
        schema: &Arc<str>,
        name: &Arc<str>,
        view: &ViewDef,
        around: Option<&ViewScope>,
    ) -> ViewScope {
        ViewScope {
            schema: schema.clone(),
            name: name.clone(),
            definer: match view.invoker {
                true => around.and_then(|v| v.definer.clone()),
                false => Some(view.definer.clone()),
            },
        }
    }
}

/// Columns of one table or view, in the order in which the statement names them first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnUse {
    pub schema: Arc<str>,
    pub table: Arc<str>,
    pub access: ColumnAccess,
    /// The view that names them, if it is not the statement itself.
    pub view: Option<Arc<ViewScope>>,
    pub columns: Vec<Arc<str>>,
}

impl ColumnUse {
    /// Memory on the heap in bytes, without names that the table's definition has.
    pub fn heap_bytes(&self) -> usize {
        self.columns.capacity() * size_of::<Arc<str>>()
    }
}

/// A table or view that privileges are granted on: database and name.
pub(crate) type Object = (Arc<str>, Arc<str>);

/// When MySQL checks the columns of an UPDATE: those of WHERE come before those of SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckStage {
    #[default]
    First,
    Set,
    Order,
}

/// See the module's header.
#[derive(Default)]
pub struct ColumnUses {
    /// Each with the stage in which it is checked.
    found: RefCell<Vec<(CheckStage, ColumnUse)>>,
    stage: Cell<CheckStage>,
    /// Table, column (by the addresses of their names), access and view of all in `found`.
    known: RefCell<HashSet<(usize, usize, ColumnAccess, Option<usize>)>>,
    scopes: RefCell<Vec<Arc<ViewScope>>>,
}

impl ColumnUses {
    /// The columns so far. After an error of binding the last one may be a name that does not
    /// exist.
    pub fn take(&self) -> Vec<ColumnUse> {
        let mut found = self.found.take();
        found.sort_by_key(|(stage, _)| *stage);
        found.into_iter().map(|(_, columns)| columns).collect()
    }

    /// Sets the stage of the columns that are added from now on.
    pub(crate) fn enter(&self, stage: CheckStage) {
        self.stage.set(stage);
    }

    /// Adds a view; returns its number.
    pub(crate) fn add_scope(&self, of: impl FnOnce(&[Arc<ViewScope>]) -> ViewScope) -> usize {
        let scope = of(&self.scopes.borrow());
        let mut scopes = self.scopes.borrow_mut();
        scopes.push(Arc::new(scope));
        scopes.len() - 1
    }

    /// Adds a column, once.
    pub(crate) fn add(
        &self,
        (schema, table): &Object,
        column: &Arc<str>,
        access: ColumnAccess,
        view: Option<usize>,
    ) {
        let address = |name: &Arc<str>| name.as_ptr() as usize;
        let key = (address(table), address(column), access, view);
        if !self.known.borrow_mut().insert(key) {
            return;
        }
        let scope = view.and_then(|n| self.scopes.borrow().get(n).cloned());
        let mut found = self.found.borrow_mut();
        let stage = self.stage.get();
        match found.last_mut() {
            Some((last_stage, last))
                if *last_stage == stage
                    && Arc::ptr_eq(&last.table, table)
                    && Arc::ptr_eq(&last.schema, schema)
                    && last.access == access
                    && last.view == scope =>
            {
                last.columns.push(column.clone());
            }
            _ => {
                let of_table = ColumnUse {
                    schema: schema.clone(),
                    table: table.clone(),
                    access,
                    view: scope,
                    columns: vec![column.clone()],
                };
                found.push((stage, of_table));
            }
        }
    }
}
