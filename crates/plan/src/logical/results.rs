//! The columns of a table created from a query (CREATE TABLE ... SELECT).

use std::sync::Arc;

use nfold_catalog::ColumnDef;
use nfold_types::{ColumnType, TextSize, TypeKind};

use super::clauses::AggFunc;
use super::expr::{ColumnAt, Expr, ExprKind, ExprType, FuncId, SubqueryUse};
use super::func::FuncSet;
use super::query::{Block, Grouping, Query, QueryBody, Source};

/// A column for one result column of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// The table column whose values these are, if there is one.
    pub origin: Option<Origin>,
}

/// The origin of a result column.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    pub column: ColumnDef,
    pub through: ColumnPath,
}

/// How a column of a table became a result column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnPath {
    /// Directly, or through a derived table that is materialized.
    Name,
    /// Through a derived table that MySQL merges into the query.
    Merged,
    /// Through MIN or MAX.
    Extreme,
}

impl Query {
    /// The columns of a table that stores the rows of this query, which calls `funcs`.
    pub fn result_columns(&self, funcs: &dyn FuncSet) -> Vec<ResultColumn> {
        let ifnull = funcs.find("ifnull").map(|(func, _)| func);
        (0..self.types.len())
            .map(|n| self.result(n, ifnull))
            .collect()
    }

    fn result(&self, n: usize, ifnull: Option<FuncId>) -> ResultColumn {
        let (meta, ty) = (&self.columns[n], &self.types[n]);
        ResultColumn {
            name: meta.name.clone(),
            ty: match &self.body {
                QueryBody::Block(_) if self.is_rolled_up_key(n) => stored_key(ty),
                QueryBody::Block(b)
                    if meta.made && (b.group.is_none() || b.select[n].as_column().is_none()) =>
                {
                    stored_type(merged_expr(b, &b.select[n]), ty, ifnull)
                }
                QueryBody::Block(b) if b.group.is_none() => b.select[n]
                    .as_column()
                    .and_then(|at| b.listed_type(at))
                    .unwrap_or(ty.column()),
                QueryBody::Set { .. } if meta.made => ty.kept().col,
                _ => ty.column(),
            },
            nullable: ty.nullable,
            origin: self.origin(n),
        }
    }

    /// Whether result column `n` is a member of GROUP BY ... WITH ROLLUP.
    fn is_rolled_up_key(&self, n: usize) -> bool {
        let QueryBody::Block(block) = &self.body else {
            return false;
        };
        let key = |group: &Grouping| group.rollup && group.is_key(&block.select[n]);
        block.group.as_ref().is_some_and(key)
    }

    /// Whether result column `n` reads a member of GROUP BY ... WITH ROLLUP.
    pub(crate) fn reads_rolled_up_key(&self, n: usize) -> bool {
        let QueryBody::Block(block) = &self.body else {
            return false;
        };
        let reads =
            |group: &Grouping| group.rollup && block.select[n].any(&mut |e| group.is_key(e));
        block.group.as_ref().is_some_and(reads)
    }

    fn origin(&self, n: usize) -> Option<Origin> {
        let QueryBody::Block(block) = &self.body else {
            return None;
        };
        let e = block.select.get(n)?;
        let Some(group) = &block.group else {
            return block.origin(e);
        };
        let position = usize::from(e.as_column().filter(|at| at.table == 0)?.column);
        if self.is_rolled_up_key(n) {
            return None;
        }
        if let Some(key) = group.keys.get(position) {
            return block.origin(key);
        }
        let aggregate = position.checked_sub(group.first_aggregate())?;
        let aggregate = group.aggregates.get(aggregate)?;
        let origin = block.origin(aggregate.args.first()?)?;
        match aggregate.func {
            AggFunc::Any if !self.columns[n].made => Some(origin),
            AggFunc::Min | AggFunc::Max => Some(Origin {
                through: ColumnPath::Extreme,
                ..origin
            }),
            _ => None,
        }
    }
}

/// The expression behind a column of a derived table, looked up through all derived tables that
/// MySQL merges into the query.
fn merged_expr<'b>(mut block: &'b Block, mut e: &'b Expr) -> &'b Expr {
    while let Some(at) = e.as_column()
        && let Some(table) = block.tables.get(usize::from(at.table))
        && let Source::Derived(q) = &table.source
        && let (true, QueryBody::Block(inner)) = (q.is_merged(), &q.body)
        && let Some(selected) = inner.select.get(usize::from(at.column))
    {
        (block, e) = (inner, selected);
    }
    e
}

/// The type of the column that MySQL creates for an expression. The integer type of a function's
/// result depends on the number of its digits, the sign included, and that of a subquery's value,
/// too. Texts of both are of varying length. IFNULL alone has the integer type of its arguments.
fn stored_type(e: &Expr, ty: &ExprType, ifnull: Option<FuncId>) -> ColumnType {
    let scalar = matches!(
        &e.kind,
        ExprKind::Subquery {
            use_as: SubqueryUse::Scalar,
            ..
        }
    );
    let function = !matches!(
        e.kind,
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Column(_) | ExprKind::Subquery { .. }
    );
    let as_needed =
        function && !matches!(&e.kind, ExprKind::Call { func, .. } if Some(*func) == ifnull);
    let of_kind = |kind| ColumnType {
        kind,
        ..ty.column()
    };
    match ty.col.kind {
        TypeKind::BigInt if as_needed && (1..=11).contains(&ty.col.width) => ColumnType {
            kind: TypeKind::Int,
            ..ty.col.clone()
        },
        TypeKind::BigInt if function && !as_needed => ty.column(),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt if as_needed || scalar => {
            of_kind(TypeKind::Int)
        }
        TypeKind::Int if scalar => of_kind(TypeKind::BigInt),
        TypeKind::Char(n) if function || scalar => of_kind(TypeKind::VarChar(n)),
        TypeKind::Binary(n) if function || scalar => of_kind(TypeKind::VarBinary(n)),
        TypeKind::Year if function => ty.column(),
        // A user variable may hold more than a MEDIUMTEXT does.
        TypeKind::Text(_) | TypeKind::Blob(_)
            if matches!(e.kind, ExprKind::UserVar(_) | ExprKind::VaryingUserVar(_)) =>
        {
            let mut col = ty.column();
            col.width = TextSize::Medium.max_bytes() as u32 + 1;
            col
        }
        _ => ty.kept().col,
    }
}

/// The type of the column that MySQL creates for a member of GROUP BY ... WITH ROLLUP.
fn stored_key(ty: &ExprType) -> ColumnType {
    let mut col = match ty.col.kind {
        TypeKind::Year => ty.column(),
        _ => ty.stored_value().col,
    };
    match col.kind {
        TypeKind::Bit(_) => {
            let unsigned = ColumnType::new(TypeKind::Int);
            return ColumnType {
                unsigned: true,
                ..unsigned
            };
        }
        TypeKind::BigInt if ty.max_length() <= 11 => col.kind = TypeKind::Int,
        TypeKind::Text(_) => col.kind = TypeKind::Text(TextSize::Long),
        TypeKind::Blob(_) => col.kind = TypeKind::Blob(TextSize::Long),
        _ => return col,
    }
    col.width = 0;
    col
}

impl Source {
    /// The column of a table behind column `n`; `None` if that is an expression.
    pub fn column(&self, n: usize) -> Option<ColumnDef> {
        match self {
            Source::Table(def) | Source::Virtual(def) => def.columns.get(n).cloned(),
            Source::Derived(q) => q.origin(n).map(|origin| origin.column),
            Source::Json(t) => t.shape.columns.get(n).cloned(),
        }
    }
}

impl Block {
    /// The type of a column of VALUES in FROM: that of its expressions, of any length.
    fn listed_type(&self, at: ColumnAt) -> Option<ColumnType> {
        match &self.tables.get(usize::from(at.table))?.source {
            Source::Derived(q) if matches!(q.body, QueryBody::Rows(_)) => {
                Some(q.types.get(usize::from(at.column))?.column())
            }
            _ => None,
        }
    }

    /// The origin of the values of `e` over the joined row.
    fn origin(&self, e: &Expr) -> Option<Origin> {
        let at = e.as_column()?;
        let column = usize::from(at.column);
        let slot = self.tables.get(usize::from(at.table))?;
        match &slot.source {
            Source::Table(def) => Some(Origin {
                column: def.columns.get(column)?.clone(),
                through: match slot.merged {
                    true => ColumnPath::Merged,
                    false => ColumnPath::Name,
                },
            }),
            Source::Derived(q) => {
                let origin = q.origin(column)?;
                let merged = q.is_merged() && origin.through == ColumnPath::Name;
                Some(Origin {
                    through: match merged {
                        true => ColumnPath::Merged,
                        false => origin.through,
                    },
                    ..origin
                })
            }
            Source::Json(t) => Some(Origin {
                column: t.shape.columns.get(column)?.clone(),
                through: ColumnPath::Name,
            }),
            Source::Virtual(_) => None,
        }
    }
}
