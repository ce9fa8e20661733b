//! Resolution of column names.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_catalog::schema::eq_name;
use nfold_sql::ast::{self, ColumnRef};
use nfold_sql::keywords::Kw;
use nfold_types::{ColumnType, ErrorCode, SqlError};

use super::aggregate::shift_inwards;
use super::window::{alias_misplaced, has_window};
use super::{AGGREGATES, BlockBinder};
use crate::logical::column_uses::{CheckStage, ColumnAccess};
use crate::logical::expr::{
    Coercibility, ColumnAt, Expr, ExprKind, ExprType, ItemName, TextOrigin,
};
use crate::logical::query::{QueryBody, Source};

/// A column name as error messages show it.
pub(super) fn display(c: &ColumnRef) -> String {
    let mut out = String::new();
    for part in [&c.schema, &c.table].into_iter().flatten() {
        out.push_str(&part.value);
        out.push('.');
    }
    out.push_str(&c.name.value);
    out
}

/// Whether two database names denote the same database.
pub(super) fn same_schema(a: &str, b: &str) -> bool {
    a == b || (a == "information_schema" && a.eq_ignore_ascii_case(b))
}

impl BlockBinder<'_> {
    /// The error for a stored function, of which there are none.
    pub(super) fn no_function(&self, call: &ast::FunctionCall) -> SqlError {
        let schema = call.schema.as_ref().map(|s| s.value.as_str());
        let Some(db) = schema.or(self.cx.db) else {
            return SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]);
        };
        let name = format!("{db}.{}", call.name);
        match Kw::of(call.name.as_bytes()).is_function() {
            true => SqlError::new(ErrorCode::ER_FUNC_INEXISTENT_NAME_COLLISION, &[&name]),
            false => SqlError::new(ErrorCode::ER_SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]),
        }
    }

    /// Finds the column of this block that `c` names. Error 1052 if there are two.
    pub(super) fn find(&self, c: &ColumnRef) -> Result<Option<ColumnAt>, SqlError> {
        let mut found = None;
        for (t, slot) in self.scope.iter().enumerate().skip(self.first_visible_slot) {
            if let Some(table) = &c.table {
                if *slot.alias != *table.value {
                    continue;
                }
                // A derived table is in no database, a view in its own.
                let own = slot.schema.as_deref().or(slot.view_schema.as_deref());
                let own = own.unwrap_or_default();
                if let Some(schema) = &c.schema
                    && !same_schema(own, &schema.value)
                {
                    continue;
                }
            }
            for (i, column) in slot.columns.iter().enumerate() {
                let seen = eq_name(&column.name, &c.name.value)
                    && (c.table.is_some() || !self.hidden.contains(&(t, i)));
                if !seen {
                    continue;
                }
                if found.is_some() {
                    return Err(SqlError::new(
                        ErrorCode::ER_NON_UNIQ_ERROR,
                        &[&display(c), &self.clause],
                    ));
                }
                found = Some(ColumnAt {
                    table: t as u16,
                    column: i as u16,
                });
            }
        }
        Ok(found)
    }

    /// In ON DUPLICATE KEY UPDATE of an INSERT ... SELECT: a column of the query. While the names
    /// are being collected, `c` is added to them and the result is NULL.
    fn source_column(&mut self, c: &ColumnRef) -> Option<Expr> {
        let sources = self.source_columns.as_mut()?;
        let found = sources.named.iter().position(|known| known == c);
        match (sources.place, found) {
            (Some(first), Some(n)) => Some(self.column_expr(ColumnAt {
                table: first.table,
                column: first.column + n as u16,
            })),
            (Some(_), None) => None,
            (None, found) => {
                if found.is_none() {
                    sources.named.push(c.clone());
                }
                Some(Expr::null())
            }
        }
    }

    /// Records that a column is named, for the check of privileges.
    pub(super) fn name_column(&self, at: ColumnAt, access: ColumnAccess) {
        if let Some(uses) = self.cx.column_uses
            && !self.unchecked
            && let Some(slot) = self.scope.get(usize::from(at.table))
            && let Some(object) = &slot.object
            && let Some(column) = slot.columns.get(usize::from(at.column))
        {
            uses.add(object, &column.name, access, self.cx.view_scope);
        }
    }

    /// How the clause that is being bound reads columns.
    pub(super) fn read_access(&self) -> ColumnAccess {
        let shows = self.cx.creates_view && self.outer.is_none() && self.clause == "field list";
        match shows {
            true => ColumnAccess::Show,
            false => ColumnAccess::Read,
        }
    }

    /// Records that a statement assigns to a column of the table in slot 0, and of the view that
    /// the statement names in place of the table.
    pub(super) fn assign_column(&self, table: &TableDef, column: usize, access: ColumnAccess) {
        let at = ColumnAt {
            table: 0,
            column: column as u16,
        };
        self.name_column(at, access);
        if let (Some(uses), Some(view)) = (self.cx.column_uses, &self.view) {
            let object = (table.schema.clone(), table.name.clone());
            let access = match access {
                ColumnAccess::InsertAll => ColumnAccess::Insert,
                access => access,
            };
            let name = &table.columns[column].name;
            uses.add(&object, name, access, view.base_scope);
        }
    }

    /// Sets when the columns that are named from now on are checked.
    pub(super) fn enter_stage(&self, stage: CheckStage) {
        if let Some(uses) = self.cx.column_uses {
            uses.enter(stage);
        }
    }

    /// Records a name that no table of the block has: an account without the privilege on all
    /// columns does not learn that.
    fn name_unknown(&self, c: &ColumnRef) {
        let mut objects = self.scope.iter().filter_map(|slot| slot.object.as_ref());
        if let Some(uses) = self.cx.column_uses
            && let (Some(object), None) = (objects.next(), objects.next())
        {
            let name = Arc::from(c.name.value.as_str());
            uses.add(object, &name, ColumnAccess::Read, self.cx.view_scope);
        }
    }

    /// A column of this block as an expression. Marks the column as read.
    pub(super) fn column_expr(&self, at: ColumnAt) -> Expr {
        Expr {
            kind: ExprKind::Column(at),
            ty: self.column_ty(at),
        }
    }

    /// Records that the statement reads a column of this block.
    pub(super) fn mark_used(&self, slot: usize, column: usize) {
        let mut used = self.used.borrow_mut();
        if let Some(flag) = used.get_mut(slot).and_then(|u| u.get_mut(column)) {
            *flag = true;
        }
    }

    fn column_ty(&self, at: ColumnAt) -> ExprType {
        let (t, i) = (usize::from(at.table), usize::from(at.column));
        self.mark_used(t, i);
        let column = &self.scope[t].columns[i];
        let nullable = column.nullable || self.tables.get(t).is_some_and(|s| s.nullable);
        let coercibility = match crate::logical::expr::Class::of(&column.ty) {
            crate::logical::expr::Class::String => {
                column.coercibility.unwrap_or(Coercibility::Implicit)
            }
            _ if matches!(column.ty.kind, nfold_types::TypeKind::Bit(_)) => Coercibility::Implicit,
            _ => Coercibility::Numeric,
        };
        ExprType {
            col: column.ty.clone(),
            nullable,
            coercibility,
            origin: self.column_origin(at, &column.ty),
            item_name: match column.ty.is_json() {
                true => self.document_name(at, &column.name),
                false => ItemName::default(),
            },
        }
    }

    /// The name of a JSON column: that of the document behind a column of a derived table that
    /// MySQL merges.
    fn document_name(&self, at: ColumnAt, name: &str) -> ItemName {
        match self.merged_item(at) {
            Some(e) => e.ty.item_name.clone(),
            None => ItemName::new(name),
        }
    }

    /// The select item behind a column of a derived table that MySQL merges.
    fn merged_item(&self, at: ColumnAt) -> Option<&Expr> {
        let source = self.tables.get(usize::from(at.table)).map(|t| &t.source);
        match source {
            Some(Source::Derived(q)) if q.is_merged() => match &q.body {
                QueryBody::Block(inner) => inner.select.get(usize::from(at.column)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The origin of a column's text: that of the function behind a column of a derived table that
    /// MySQL merges.
    fn column_origin(&self, at: ColumnAt, ty: &ColumnType) -> TextOrigin {
        if ty.is_blob() {
            return TextOrigin::Cached;
        }
        if let Some(e) = self.merged_item(at) {
            use TextOrigin::{Cached, Computed, Matched};
            if let origin @ (Cached | Computed | Matched) = e.ty.origin {
                return origin;
            }
        }
        TextOrigin::Column
    }

    /// Resolves `c`: in this block, then in enclosing queries, then among the aliases of the select
    /// list if the clause allows them.
    pub(super) fn column(&mut self, c: &ColumnRef) -> Result<Expr, SqlError> {
        let having = self.clause == "having clause" && !self.in_aggregate;
        if having && let Some(e) = self.having_name(c)? {
            return self.passed_alias(c, e);
        }
        if let Some(at) = self.find(c)? {
            // HAVING may not name a table column that is neither selected nor grouped by.
            let seen = !having || self.aliases.iter().any(|(_, e)| e.as_column() == Some(at));
            if let Some(sources) = self.source_columns.as_mut().filter(|_| c.table.is_none()) {
                sources.shared.push(c.clone());
            }
            if seen {
                self.name_column(at, self.read_access());
                return Ok(self.column_expr(at));
            }
        }
        if let Some(e) = self.source_column(c) {
            return Ok(e);
        }
        let alias_clause = matches!(
            self.clause,
            "order clause" | "group statement" | "having clause"
        );
        if alias_clause
            && c.table.is_none()
            && let Some(e) = self.alias(&c.name.value, self.clause)?
        {
            return self.passed_alias(c, e);
        }
        let mut level = 1;
        let mut outer = self.outer;
        while let Some(block) = outer {
            let later = |name: &Arc<str>| eq_name(name, &c.name.value);
            if having && c.table.is_none() && block.later_columns.iter().any(later) {
                return Err(forward_reference(&c.name.value));
            }
            if let Some(at) = block.find(c)? {
                let mut e = block.column_expr(at);
                block.name_column(at, ColumnAccess::Read);
                e.kind = ExprKind::Outer { level, at };
                self.correlated_up_to(level);
                return Ok(e);
            }
            if c.table.is_none()
                && let Some(mut e) = block.alias(&c.name.value, self.clause)?
            {
                let gathers = |e: &Expr| e.as_column().is_some_and(|at| at.table == AGGREGATES);
                let in_having = [self.clause, block.clause] == ["having clause"; 2];
                if !in_having && e.any(&mut |e| gathers(e)) {
                    return Err(SqlError::new(
                        ErrorCode::ER_ILLEGAL_REFERENCE,
                        &[&c.name.value, &"reference to group function"],
                    ));
                }
                if has_window(&e) {
                    return Err(alias_misplaced(&c.name.value));
                }
                shift_inwards(&mut e, level, &block.subqueries, &mut self.subqueries);
                self.correlated_up_to(level);
                self.alias_in_aggregate |= self.in_aggregate;
                return Ok(e);
            }
            if c.table.is_none() && block.later_aliases.iter().any(later) {
                return Err(forward_reference(&c.name.value));
            }
            level += 1;
            outer = block.outer;
        }
        if let (Some(table), Some(_) | None) = (&c.table, &c.schema)
            && c.table.is_some()
            && !self.scope.iter().any(|s| *s.alias == *table.value)
            && self.clause == "table star"
        {
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_TABLE,
                &[&table.value, &self.clause],
            ));
        }
        self.name_unknown(c);
        Err(SqlError::new(
            ErrorCode::ER_BAD_FIELD_ERROR,
            &[&display(c), &self.clause],
        ))
    }

    /// Returns the expression `e` behind alias `c`. Error 3594 if it is a window function and the
    /// clause does not allow one.
    fn passed_alias(&self, c: &ColumnRef, e: Expr) -> Result<Expr, SqlError> {
        let misplaced = self.clause == "having clause" || self.in_window || self.in_aggregate;
        match misplaced && has_window(&e) {
            true => Err(alias_misplaced(&c.name.value)),
            false => Ok(e),
        }
    }

    /// Marks this block, and those between it and the block `level` further out, as correlated.
    fn correlated_up_to(&self, level: u16) {
        let mut block = Some(self);
        for _ in 0..level {
            if let Some(b) = block {
                b.correlated.set(true);
                block = b.outer;
            }
        }
    }

    /// Finds the select item called `name`. If several have the name, an item that is not a column
    /// is preferred.
    ///
    /// # Errors
    /// 1052 if two different columns have the name and no other item before the second one does.
    pub(super) fn alias(&self, name: &str, clause: &str) -> Result<Option<Expr>, SqlError> {
        let is_column = |e: &Expr| match &e.kind {
            ExprKind::Column(at) => at.table < super::WINDOWS,
            ExprKind::Outer { .. } => true,
            _ => false,
        };
        let mut found: Option<&Expr> = None;
        let called = self.aliases.iter().filter(|(a, _)| eq_name(a, name));
        for (_, e) in called {
            match found {
                _ if !is_column(e) => return Ok(Some(e.clone())),
                Some(other) if other.kind != e.kind => {
                    let code = ErrorCode::ER_NON_UNIQ_ERROR;
                    return Err(SqlError::new(code, &[&name, &clause]));
                }
                _ => found = Some(e),
            }
        }
        Ok(found.cloned())
    }

    /// Resolves a name in HAVING: a GROUP BY column first, then a select alias. `None`: look in the
    /// tables.
    fn having_name(&self, c: &ColumnRef) -> Result<Option<Expr>, SqlError> {
        let at = self.find(c).ok().flatten();
        if let Some(at) = at
            && self.keys.iter().any(|k| k.as_column() == Some(at))
        {
            self.name_column(at, ColumnAccess::Read);
            return Ok(Some(self.column_expr(at)));
        }
        if c.table.is_none() {
            return self.alias(&c.name.value, self.clause);
        }
        Ok(None)
    }
}

/// Error 1247 for a select item that is named before it is bound.
fn forward_reference(name: &str) -> SqlError {
    SqlError::new(
        ErrorCode::ER_ILLEGAL_REFERENCE,
        &[&name, &"forward reference in item list"],
    )
}
