//! MATCH ... AGAINST.

use nfold_sql::ast::{self, ColumnRef, MatchMode};
use nfold_types::{ErrorCode, SqlError};

use super::BlockBinder;
use crate::logical::expr::{ColumnAt, Expr, ExprKind, ExprType, is_constant};
use crate::logical::fulltext::{MATCH, SearchMode, SearchTarget};
use crate::logical::query::Source;

impl BlockBinder<'_> {
    /// Binds MATCH (columns) AGAINST (against mode).
    ///
    /// # Errors
    /// 1191 if no full-text index has exactly these columns, 1210 if they are not columns of one
    /// table or `against` is not constant, 1235 for columns of views and enclosing queries.
    #[inline(never)]
    pub(super) fn match_against(
        &mut self,
        columns: &[ColumnRef],
        against: &ast::Expr,
        mode: MatchMode,
    ) -> Result<Expr, SqlError> {
        let wrong = |what: &str| SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&what]);
        let mut documents = Vec::with_capacity(columns.len());
        for column in columns {
            let column = self.column(column)?;
            if let ExprKind::Outer { .. } = column.kind {
                let what = "MATCH over columns of an enclosing query";
                return Err(SqlError::not_supported(what));
            }
            documents.push(column);
        }
        let places: Option<Vec<ColumnAt>> = documents.iter().map(Expr::as_column).collect();
        let places = places.ok_or_else(|| wrong("MATCH"))?;
        let slot = places.first().ok_or_else(|| wrong("MATCH"))?.table;
        if places.iter().any(|at| at.table != slot) {
            return Err(wrong("MATCH"));
        }
        let missing = || SqlError::new(ErrorCode::ER_FT_MATCHING_KEY_NOT_FOUND, &[]);
        let def = match self.tables.get(usize::from(slot)).map(|t| &t.source) {
            Some(Source::Table(def)) => def.clone(),
            Some(Source::Derived(_)) => {
                let what = "MATCH over columns of a view or derived table";
                return Err(SqlError::not_supported(what));
            }
            _ => return Err(missing()),
        };
        let named = |column: usize| places.iter().any(|at| usize::from(at.column) == column);
        let fits = |index: &&nfold_catalog::IndexDef| {
            let parts = index.shown_parts();
            index.fulltext().is_some()
                && (index.visible || self.cx.uses_invisible_indexes())
                && parts.iter().all(|p| named(p.column))
                && places.iter().all(|at| {
                    let column = usize::from(at.column);
                    parts.iter().any(|p| p.column == column)
                })
        };
        let index = def.indexes.iter().find(fits).ok_or_else(missing)?;
        let against = self.expr(against)?;
        if !is_constant(&against) {
            return Err(wrong("AGAINST"));
        }
        let target = SearchTarget {
            table: def.id.0,
            index: index.id.0,
            mode: match mode {
                MatchMode::NaturalLanguage => SearchMode::NaturalLanguage,
                MatchMode::Boolean => SearchMode::Boolean,
                MatchMode::QueryExpansion => SearchMode::Expanded,
            },
        };
        let words = self.column_expr(ColumnAt {
            table: slot,
            column: index.parts[0].column as u16,
        });
        let ty = ExprType::string(
            17,
            nfold_types::CollationId::BINARY,
            crate::logical::expr::Coercibility::Coercible,
            false,
        );
        let mut args = vec![words, against, Expr::constant(target.to_value(), ty)];
        args.extend(documents);
        let Some((func, _)) = self.cx.funcs.find(MATCH) else {
            return Err(SqlError::not_supported("MATCH ... AGAINST"));
        };
        Ok(Expr {
            kind: ExprKind::Call { func, args },
            ty: ExprType::double(true),
        })
    }
}
