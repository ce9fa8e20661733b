//! Stored expressions of a definition: their text, and the functions and columns that they may
//! contain.
//!
//! Source: MySQL manual, "CHECK Constraints", "Data Type Default Values", "CREATE TABLE and
//! Generated Columns".

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{
    ColumnDef, ColumnDefault, SchemaSnapshot, StoredExpr, TableDef, TableId, TableStats,
};
use nfold_engine::TableSpec;
use nfold_exec::func::Builtins;
use nfold_plan::bind::table_exprs::{StoredUse, bind_stored, table_exprs};
use nfold_plan::expr::Expr as Bound;
use nfold_plan::func::FuncSet;
use nfold_plan::table_exprs::TableExprs;
use nfold_plan::{PlanCx, PlanInfo, SqlMode, VarScope};
use nfold_sql::ast::Expr;
use nfold_sql::stored::{self, Refusal, refusal};
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, ErrorCode, NoCheckpoint, SqlError, TypeKind};

use super::{DdlCx, error, foreign};

/// The purpose of an expression, with its name for messages.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    Check(&'a str),
    Default(&'a str),
    Generated(&'a str),
    /// A functional key part of this index.
    Key(&'a str),
}

/// The SQL modes that affect the types of operands.
const TYPING: u32 = SqlMode::NO_UNSIGNED_SUBTRACTION.0 | SqlMode::PAD_CHAR_TO_FULL_LENGTH.0;

/// The stored form of an expression.
///
/// # Errors
/// MySQL's errors for functions, variables, subqueries and rows that the purpose does not allow.
pub fn stored_expr(e: &Expr, purpose: Purpose<'_>, cx: &DdlCx<'_>) -> Result<StoredExpr, SqlError> {
    refuse(e, purpose)?;
    let normal = stored::normal(e, cx.connection.known().charset);
    let mut columns: Vec<Arc<str>> = Vec::new();
    for c in stored::columns(&normal) {
        if !columns.iter().any(|known| eq_name(known, c.name.as_str())) {
            columns.push(c.name.as_str().into());
        }
    }
    Ok(StoredExpr {
        text: stored::text(&normal).into(),
        columns,
        mode: cx.sql_mode.0 & TYPING,
    })
}

fn refuse(e: &Expr, purpose: Purpose<'_>) -> Result<(), SqlError> {
    use ErrorCode as C;
    use Purpose as P;
    let (P::Check(name) | P::Default(name) | P::Generated(name) | P::Key(name)) = purpose;
    if matches!(e, Expr::Row(_)) && !matches!(purpose, P::Check(_)) {
        let code = match purpose {
            P::Check(_) => C::ER_CHECK_CONSTRAINT_ROW_VALUE,
            P::Default(_) => C::ER_DEFAULT_VAL_GENERATED_ROW_VALUE,
            P::Generated(_) => C::ER_GENERATED_COLUMN_ROW_VALUE,
            P::Key(_) => C::ER_FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED,
        };
        return Err(error(code, &[&name]));
    }
    let known = |name: &str| Builtins.find(name).is_some();
    let Some(refused) = refusal(e, matches!(purpose, P::Default(_)), &known) else {
        return Ok(());
    };
    Err(match (refused, purpose) {
        (Refusal::Aggregate, _) => error(C::ER_INVALID_GROUP_FUNC_USE, &[]),
        (Refusal::Window(function), _) => error(C::ER_WINDOW_INVALID_WINDOW_FUNC_USE, &[&function]),
        (Refusal::Variable, P::Check(_)) => error(C::ER_CHECK_CONSTRAINT_VARIABLES, &[&name]),
        (Refusal::Variable, _) => error(C::ER_DEFAULT_VAL_GENERATED_VARIABLES, &[&name]),
        (Refusal::Function(_), P::Key(_)) => {
            error(C::ER_FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED, &[&name])
        }
        (Refusal::Function(function), purpose) => {
            let [unnamed, named] = match purpose {
                P::Check(_) => [
                    C::ER_CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED,
                    C::ER_CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED,
                ],
                P::Default(_) => [
                    C::ER_DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED,
                    C::ER_DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED,
                ],
                P::Generated(_) | P::Key(_) => [
                    C::ER_GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED,
                    C::ER_GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED,
                ],
            };
            match function {
                Some(function) => error(named, &[&name, &function]),
                None => error(unnamed, &[&name]),
            }
        }
    })
}

/// Binds an expression over the columns of a spec.
///
/// # Errors
/// MySQL's errors for unknown columns and wrong operands.
pub fn bind(
    e: &StoredExpr,
    spec: &TableSpec,
    usage: StoredUse<'_>,
    cx: &DdlCx<'_>,
) -> Result<Bound, SqlError> {
    let def = Arc::new(foreign::definition_of(spec));
    let parsed = stored::parse(&e.text)?;
    bind_stored(&plan_cx(cx.schema), &def, (&parsed, SqlMode(e.mode)), usage)
}

/// Binds the stored expressions of the table of `spec`; `None` if it has none.
pub fn bound(
    spec: &TableSpec,
    schema: &SchemaSnapshot,
) -> Result<Option<Arc<TableExprs>>, SqlError> {
    table_exprs(&plan_cx(schema), &Arc::new(foreign::definition_of(spec)))
}

/// Checks every stored expression of a spec.
///
/// # Errors
/// 1054 and 3820 for unknown columns, 3107 and 3767 for columns that are defined later, 3109, 3768
/// and 3818 for the AUTO_INCREMENT column, and those of binding.
pub fn check(spec: &TableSpec, cx: &DdlCx<'_>) -> Result<(), SqlError> {
    for (n, c) in spec.columns.iter().enumerate() {
        if let ColumnDefault::Expr(e) = &c.default {
            check_default(spec, n, e)?;
            bind(e, spec, StoredUse::Default(c), cx)?;
        }
        if let Some(g) = &c.generated {
            check_generated(spec, n, &g.expr)?;
            bind(&g.expr, spec, StoredUse::Generated(c), cx)?;
        }
    }
    for check in &spec.checks {
        bind(&check.expr, spec, StoredUse::Check, cx)?;
    }
    Ok(())
}

/// The ordinals of the columns that an expression names. Error 1054.
fn ordinals(spec: &TableSpec, e: &StoredExpr, clause: &str) -> Result<Vec<usize>, SqlError> {
    let ordinal = |name: &Arc<str>| {
        let found = column_of(&spec.columns, name);
        found.ok_or_else(|| error(ErrorCode::ER_BAD_FIELD_ERROR, &[name, &clause]))
    };
    e.columns.iter().map(ordinal).collect()
}

/// The ordinal of a column that is not hidden.
pub fn column_of(columns: &[ColumnDef], name: &str) -> Option<usize> {
    columns.iter().position(|c| eq_name(&c.name, name))
}

fn check_default(spec: &TableSpec, column: usize, e: &StoredExpr) -> Result<(), SqlError> {
    let name = &spec.columns[column].name;
    for at in ordinals(spec, e, "default value expression")? {
        let named = &spec.columns[at];
        if named.auto_increment {
            let code = ErrorCode::ER_DEFAULT_VAL_GENERATED_REF_AUTO_INC;
            return Err(error(code, &[name]));
        }
        let computed = named.generated.is_some() || matches!(named.default, ColumnDefault::Expr(_));
        if computed && at >= column {
            return Err(error(
                ErrorCode::ER_DEFAULT_VAL_GENERATED_NON_PRIOR,
                &[name],
            ));
        }
    }
    Ok(())
}

fn check_generated(spec: &TableSpec, column: usize, e: &StoredExpr) -> Result<(), SqlError> {
    for at in ordinals(spec, e, "generated column function")? {
        let named = &spec.columns[at];
        if named.auto_increment {
            let code = ErrorCode::ER_GENERATED_COLUMN_REF_AUTO_INC;
            return Err(error(code, &[&spec.columns[column].name]));
        }
        if named.generated.is_some() && at >= column {
            return Err(error(ErrorCode::ER_GENERATED_COLUMN_NON_PRIOR, &[]));
        }
    }
    Ok(())
}

/// The planning context of definitions, without a session.
fn plan_cx(schema: &SchemaSnapshot) -> PlanCx<'_> {
    PlanCx {
        snapshot: schema,
        stored: schema,
        db: Some(""),
        mode: SqlMode::default(),
        connection: CollationId::UTF8MB4_0900_AI_CI,
        funcs: &Builtins,
        info: &NoSession,
        checkpoint: &NoCheckpoint,
        text: &[],
        params: &[],
        column_uses: None,
        literals: None,
        select_limit: None,
        safe_updates: false,
        foreign_key_checks: false,
        group_concat_max_len: 1024,
        div_precision_increment: 4,
        switches: nfold_plan::Switches::DEFAULT,
        explain_format: (nfold_sql::ast::ExplainFormat::Tree, 2),
        trace: None,
    }
}

struct NoSession;

impl PlanInfo for NoSession {
    fn stats(&self, _: TableId) -> Option<Arc<TableStats>> {
        None
    }

    fn sysvar_type(&self, _: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError> {
        Err(error(ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE, &[&name]))
    }

    fn user_var_type(&self, _: &str) -> ColumnType {
        ColumnType::new(TypeKind::Null)
    }

    fn virtual_table(&self, _: &str, _: &str) -> Option<Arc<TableDef>> {
        None
    }
}
