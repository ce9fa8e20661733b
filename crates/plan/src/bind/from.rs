//! FROM: tables become row slots, joins become conditions.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_sql::ast::{
    BinaryOp, Ident, IndexHint, IndexHintKind, Join, JoinConstraint, JoinKind, ObjectName,
    TableFactor, TableRef,
};
use nfold_types::{ErrorCode, SqlError};

use super::keyed::Asked;
use super::{BlockBinder, ScopeColumn, ScopeSlot, block};
use crate::expr::{ColumnAt, Expr};
use crate::query::{QueryPlan, TableSlot, TableSource};

/// Tables that one query block may join, as in MySQL: a set of them is a 64-bit word.
const MAX_TABLES: usize = 61;

/// What FROM says besides the slots themselves.
#[derive(Debug, Default)]
pub(crate) struct FromInfo {
    /// ON conditions of inner joins; they count as WHERE.
    pub conditions: Vec<Expr>,
    /// Per slot: the outer join that it is the inner side of.
    pub left: Vec<Option<LeftJoin>>,
    /// Per slot: what index hints allow.
    pub hints: Vec<Hints>,
    /// STRAIGHT_JOIN: tables are read in the order written.
    pub straight: bool,
    /// Coalesced columns of USING, which `*` shows first.
    pub star_first: Vec<ColumnAt>,
}

/// An outer join.
#[derive(Debug, Clone)]
pub(crate) struct LeftJoin {
    pub on: Vec<Expr>,
    /// Slots of its outer side.
    pub depends: Vec<usize>,
}

/// Index hints of one slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// USE or FORCE: only these.
    pub only: Option<Vec<usize>>,
    pub ignore: Vec<usize>,
    /// FORCE: a scan of the table is the last resort.
    pub force: bool,
}

impl BlockBinder<'_> {
    /// Binds FROM.
    pub(crate) fn from(&mut self, refs: &[TableRef]) -> Result<FromInfo, SqlError> {
        let mut info = FromInfo::default();
        for r in refs {
            self.table_ref(r, &mut info)?;
        }
        Ok(info)
    }

    /// Binds one table reference; gives the range of its slots.
    fn table_ref(
        &mut self,
        r: &TableRef,
        info: &mut FromInfo,
    ) -> Result<std::ops::Range<usize>, SqlError> {
        let start = self.tables.len();
        match r {
            TableRef::Table(t) => self.base(t, info)?,
            TableRef::Derived {
                lateral,
                query,
                alias,
                columns,
            } => {
                if *lateral {
                    return Err(SqlError::not_supported("LATERAL"));
                }
                // It sees what is outside of this block, not the tables beside it.
                let plan = match self.outer {
                    Some(outer) => {
                        let bound = block::bind_subquery(self.cx, query, outer, Asked::Rows)?;
                        if bound.correlated {
                            self.correlated.set(true);
                        }
                        bound.plan
                    }
                    None => block::bind_query(self.cx, query, None)?,
                };
                self.derived(plan, alias, columns, info)?;
            }
            TableRef::Join(j) => self.join(j, info)?,
        }
        Ok(start..self.tables.len())
    }

    fn base(&mut self, t: &TableFactor, info: &mut FromInfo) -> Result<(), SqlError> {
        if !t.partitions.is_empty() {
            return Err(SqlError::not_supported("PARTITION selection"));
        }
        if let Some((plan, columns)) = self.common_table(&t.name)? {
            let alias = t.alias.as_ref().unwrap_or(&t.name.name);
            return self.derived(plan, alias, columns, info);
        }
        let (schema, source) = self.find_table(&t.name)?;
        let alias: Arc<str> = t
            .alias
            .as_ref()
            .unwrap_or(&t.name.name)
            .value
            .as_str()
            .into();
        if self
            .scope
            .iter()
            .any(|s| s.alias == alias && (t.alias.is_some() || s.schema.as_ref() == Some(&schema)))
        {
            return Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&alias]));
        }
        let columns = match &source {
            TableSource::Table(def) | TableSource::Virtual(def) => def
                .columns
                .iter()
                .map(|c| ScopeColumn {
                    name: c.name.clone(),
                    ty: c.ty.clone(),
                    nullable: c.nullable,
                    coercibility: None,
                    made: false,
                })
                .collect(),
            TableSource::Derived(_) => Vec::new(),
        };
        let hints = match &source {
            TableSource::Table(def) => index_hints(def, &alias, &t.hints)?,
            _ => Hints::default(),
        };
        self.push_slot(Some(schema), alias, columns, source, info, hints)
    }

    /// The table `name`: of the schema, or a system view.
    pub(super) fn find_table(
        &self,
        name: &ObjectName,
    ) -> Result<(Arc<str>, TableSource), SqlError> {
        let schema = match (&name.schema, self.cx.db) {
            (Some(s), _) => s.value.as_str(),
            (None, Some(db)) => db,
            (None, None) => return Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
        };
        if let Some(table) = self.cx.snapshot.table(schema, &name.name.value) {
            return Ok((table.schema.clone(), TableSource::Table(table.clone())));
        }
        if let Some(view) = self.cx.info.virtual_table(schema, &name.name.value) {
            return Ok((view.schema.clone(), TableSource::Virtual(view)));
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            let name = name.name.value.to_uppercase();
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_TABLE,
                &[&name, &"information_schema"],
            ));
        }
        if self.cx.snapshot.database(schema).is_none() && schema != "performance_schema" {
            return Err(SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&schema]));
        }
        Err(SqlError::new(
            ErrorCode::ER_NO_SUCH_TABLE,
            &[&schema, &name.name.value],
        ))
    }

    fn derived(
        &mut self,
        plan: QueryPlan,
        alias: &Ident,
        names: &[Ident],
        info: &mut FromInfo,
    ) -> Result<(), SqlError> {
        if !names.is_empty() && names.len() != plan.types.len() {
            return Err(SqlError::new(ErrorCode::ER_VIEW_WRONG_LIST, &[]));
        }
        let alias: Arc<str> = alias.value.as_str().into();
        if self.scope.iter().any(|s| s.alias == alias) {
            return Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&alias]));
        }
        let mut columns: Vec<ScopeColumn> = Vec::with_capacity(plan.types.len());
        let merged = plan.limit.is_none()
            && matches!(&plan.body, crate::query::QueryBody::Block(b)
                if b.group.is_none() && !b.distinct && !b.tables.is_empty());
        for (i, (meta, ty)) in plan.columns.iter().zip(&plan.types).enumerate() {
            let name = names
                .get(i)
                .map_or_else(|| meta.name.clone(), |n| n.value.as_str().into());
            if columns.iter().any(|c| eq_name(&c.name, &name)) {
                return Err(SqlError::new(ErrorCode::ER_DUP_FIELDNAME, &[&name]));
            }
            let aggregated =
                matches!(&plan.body, crate::query::QueryBody::Block(b) if b.group.is_some());
            let kept = !merged && meta.made && !aggregated;
            columns.push(ScopeColumn {
                name,
                ty: match (kept, merged) {
                    (true, _) => ty.kept().col,
                    (false, true) => ty.col.clone(),
                    (false, false) => ty.column(),
                },
                nullable: ty.nullable,
                coercibility: merged.then_some(ty.coercibility),
                made: merged && meta.made,
            });
        }
        self.push_slot(
            None,
            alias,
            columns,
            TableSource::Derived(Box::new(plan)),
            info,
            Hints::default(),
        )
    }

    fn push_slot(
        &mut self,
        schema: Option<Arc<str>>,
        alias: Arc<str>,
        columns: Vec<ScopeColumn>,
        source: TableSource,
        info: &mut FromInfo,
        hints: Hints,
    ) -> Result<(), SqlError> {
        if self.tables.len() >= MAX_TABLES {
            return Err(SqlError::new(ErrorCode::ER_TOO_MANY_TABLES, &[&MAX_TABLES]));
        }
        self.used.borrow_mut().push(vec![false; columns.len()]);
        self.scope.push(ScopeSlot {
            schema,
            alias: alias.clone(),
            columns,
        });
        self.tables.push(TableSlot {
            source,
            alias,
            used: Vec::new(),
            nullable: false,
        });
        info.left.push(None);
        info.hints.push(hints);
        Ok(())
    }

    /// Binds one table alone, for INSERT, UPDATE and DELETE.
    pub(super) fn single(&mut self, t: &TableFactor) -> Result<FromInfo, SqlError> {
        let mut info = FromInfo::default();
        self.base(t, &mut info)?;
        Ok(info)
    }

    fn join(&mut self, j: &Join, info: &mut FromInfo) -> Result<(), SqlError> {
        let left = self.table_ref(&j.left, info)?;
        let right = self.table_ref(&j.right, info)?;
        let mut on = Vec::new();
        match &j.constraint {
            JoinConstraint::None => {}
            JoinConstraint::On(e) => {
                let clause = std::mem::replace(&mut self.clause, "on clause");
                // Only what is joined so far is in sight of ON.
                let e = self.expr(e)?;
                self.clause = clause;
                block::conjuncts(e, &mut on);
            }
            JoinConstraint::Using(names) => {
                for name in names {
                    on.push(self.coalesce(
                        &name.value,
                        left.clone(),
                        right.clone(),
                        j.kind,
                        info,
                    )?);
                }
            }
            JoinConstraint::Natural => {
                let names: Vec<Arc<str>> = self.scope[left.clone()]
                    .iter()
                    .flat_map(|s| s.columns.iter().map(|c| c.name.clone()))
                    .filter(|n| {
                        self.scope[right.clone()]
                            .iter()
                            .any(|s| s.columns.iter().any(|c| eq_name(&c.name, n)))
                    })
                    .collect();
                for name in names {
                    on.push(self.coalesce(&name, left.clone(), right.clone(), j.kind, info)?);
                }
            }
        }
        let (inner, outer) = match j.kind {
            JoinKind::Inner | JoinKind::Straight => {
                info.straight |= j.kind == JoinKind::Straight;
                // Conditions inside the inner side of an outer join stay with it: a single slot there has no such join.
                info.conditions.extend(on);
                return Ok(());
            }
            JoinKind::Left => (right, left),
            JoinKind::Right => (left, right),
        };
        if inner.len() != 1 {
            return Err(SqlError::not_supported(
                "a join on the inner side of an outer join",
            ));
        }
        let slot = inner.start;
        self.tables[slot].nullable = true;
        info.left[slot] = Some(LeftJoin {
            on,
            depends: outer.collect(),
        });
        Ok(())
    }

    fn coalesce(
        &mut self,
        name: &str,
        left: std::ops::Range<usize>,
        right: std::ops::Range<usize>,
        kind: JoinKind,
        info: &mut FromInfo,
    ) -> Result<Expr, SqlError> {
        let find = |range: std::ops::Range<usize>| -> Result<ColumnAt, SqlError> {
            let mut found = None;
            for t in range {
                for (i, c) in self.scope[t].columns.iter().enumerate() {
                    if eq_name(&c.name, name) && !self.hidden.contains(&(t, i)) {
                        if found.is_some() {
                            return Err(SqlError::new(
                                ErrorCode::ER_NON_UNIQ_ERROR,
                                &[&name, &"from clause"],
                            ));
                        }
                        found = Some(ColumnAt {
                            table: t as u16,
                            column: i as u16,
                        });
                    }
                }
            }
            found.ok_or_else(|| {
                SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[&name, &"from clause"])
            })
        };
        let (l, r) = (find(left)?, find(right)?);
        let (seen, gone) = if kind == JoinKind::Right {
            (r, l)
        } else {
            (l, r)
        };
        self.hidden
            .push((usize::from(gone.table), usize::from(gone.column)));
        if !info.star_first.contains(&seen) {
            info.star_first.push(seen);
        }
        let (a, b) = (self.column_expr(l), self.column_expr(r));
        self.compare(BinaryOp::Eq, a, b)
    }

    /// The slot that `name.*` or a DELETE target means.
    pub(super) fn slot_named(&self, name: &ObjectName) -> Option<usize> {
        self.scope.iter().position(|s| {
            *s.alias == *name.name.value
                && name.schema.as_ref().is_none_or(|n| {
                    s.schema
                        .as_ref()
                        .is_none_or(|own| super::names::same_schema(own, &n.value))
                })
        })
    }
}

fn index_hints(
    def: &nfold_catalog::TableDef,
    alias: &str,
    hints: &[IndexHint],
) -> Result<Hints, SqlError> {
    let mut out = Hints::default();
    for hint in hints {
        let mut list = Vec::new();
        for name in &hint.indexes {
            let found = if name.is("PRIMARY") {
                def.has_primary_key().then_some(0)
            } else {
                def.index(&name.value)
            };
            list.push(found.ok_or_else(|| {
                SqlError::new(ErrorCode::ER_KEY_DOES_NOT_EXITS, &[&name.value, &alias])
            })?);
        }
        match hint.kind {
            IndexHintKind::Ignore => out.ignore.extend(list),
            kind => {
                out.only.get_or_insert_default().extend(list);
                out.force |= kind == IndexHintKind::Force;
            }
        }
    }
    Ok(out)
}
