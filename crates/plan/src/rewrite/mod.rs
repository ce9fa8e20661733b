//! Rewrites of the logical tree. Each rule is a file, and changes one block, whose nested queries
//! have been rewritten before. The rules in their order:
//!
//! 1. [`member_texts`]: members of ENUM and SET are compared with subqueries by their text.
//! 2. [`small_sums`]: arithmetic over literals with a small value has a narrow type.
//! 3. [`unions`]: EXISTS and IN over a correlated UNION become one for each of its sides.
//! 4. [`quantified`]: correlated ANY and ALL become EXISTS.
//! 5. [`redundant`]: a subquery loses the clauses that its use does not need.
//! 6. [`distinct`]: DISTINCT becomes a grouping by the whole row.
//! 7. [`merge`]: derived tables, views and common table expressions become part of the block.
//! 8. [`pad`]: PAD_CHAR_TO_FULL_LENGTH becomes a function call around CHAR columns.
//! 9. [`decided`]: constants decide AND and OR.
//! 10. [`constant_keys`]: a constant key of GROUP BY that no result shows becomes a literal.
//! 11. [`disjunctions`]: conditions that all branches of an OR share are moved out of it.
//! 12. [`row_lists`]: OR of equalities of the same columns becomes IN over rows.
//! 13. [`generated`]: an indexed generated column replaces its expression.
//! 14. [`arrays`]: an indexed array replaces its document in MEMBER OF and its kin.
//! 15. [`outer_joins`]: outer joins whose NULL-extended rows are rejected become inner joins.
//! 16. [`push_down`]: conditions on derived tables that are not merged are tested inside them.
//! 17. [`decorrelate`]: a correlated EXISTS or IN becomes a set that is computed once.
//! 18. [`grouped`]: a correlated aggregate subquery becomes groups that are computed once.
//! 19. [`semi_joins`]: EXISTS and IN over one table become semi joins, NOT EXISTS and NOT IN anti
//!     joins. It runs after all blocks have been rewritten.
//! 20. [`inner_tables`]: tables of an IN subquery that only restrict its rows become semi joins.
//! 21. [`rank_order`]: the rows of a full-text search come in the order of their ranks.
//! 22. [`document_paths`]: JSON columns are marked of which only a part is needed.
//! 23. [`shared_rows`]: equal derived tables are computed once.

mod arrays;
mod constant_keys;
mod decided;
mod decorrelate;
mod disjunctions;
mod distinct;
mod document_paths;
mod generated;
mod grouped;
mod inner_tables;
mod member_texts;
mod merge;
mod outer_joins;
mod pad;
mod push_down;
mod quantified;
mod rank_order;
mod redundant;
mod row_lists;
mod semi_joins;
mod shared_rows;
mod small_sums;
mod unions;

#[cfg(test)]
mod tests;

use nfold_types::{ErrorCode, SqlError};

use crate::logical::context::PlanCx;
use crate::logical::query::{Block, Query, QueryBody, Recursion, Source, Subquery};
use crate::logical::statement::{InsertRows, Statement};
use crate::logical::table_exprs::BindExprs;

/// The context of the rules.
struct RewriteCx<'r> {
    plan: &'r PlanCx<'r>,
    exprs: &'r BindExprs<'r>,
}

/// Rewrites a bound statement. `exprs` binds the stored expressions of tables.
///
/// # Errors
/// The errors of `exprs`, and 3576 if the rows of a recursion are on the inner side of an outer
/// join that cannot become an inner join.
pub(crate) fn rewrite(
    plan: &PlanCx<'_>,
    mut statement: Statement,
    exprs: &BindExprs<'_>,
) -> Result<Statement, SqlError> {
    let cx = &RewriteCx { plan, exprs };
    shared_rows::forget_single_references(&mut statement);
    match &mut statement {
        Statement::Query(q) => {
            query(cx, q)?;
            shared_rows::undo_push_down(q);
            semi_joins::join_subqueries(cx.plan, q);
            if let QueryBody::Block(block) = &mut q.body {
                rank_order::order_by_rank(cx.plan, block);
            }
            document_paths::mark_documents(cx.plan, q);
        }
        Statement::Insert(insert) => {
            if let InsertRows::Query(q) = &mut insert.source {
                query(cx, q)?;
                document_paths::mark_documents(cx.plan, q);
            }
            subqueries(cx, &mut insert.subqueries)?;
        }
        Statement::Update(update) => block(cx, &mut update.source, update.limit.is_some())?,
        Statement::Delete(delete) => block(cx, &mut delete.source, delete.limit.is_some())?,
        Statement::UpdateTables(update) => block(cx, &mut update.source, false)?,
        Statement::DeleteTables(delete) => block(cx, &mut delete.source, false)?,
        Statement::Do(_, list) => subqueries(cx, list)?,
    }
    shared_rows::share(plan, &mut statement);
    Ok(statement)
}

fn query(cx: &RewriteCx<'_>, q: &mut Query) -> Result<(), SqlError> {
    match &mut q.body {
        QueryBody::Block(b) => block(cx, b, q.limit.is_some()),
        QueryBody::Set { left, right, .. } => {
            query(cx, left)?;
            query(cx, right)
        }
        QueryBody::Recursive(r) => {
            r.queries_mut().try_for_each(|q| query(cx, q))?;
            check_steps(r)
        }
        QueryBody::Rows(_) | QueryBody::Working(_) => Ok(()),
    }
}

/// Checks that no step of a recursion has its own rows on the inner side of an outer join: each
/// round reads only the rows of the round before.
fn check_steps(recursion: &Recursion) -> Result<(), SqlError> {
    let rows = QueryBody::Working(recursion.number);
    let is_own = |source: &Source| matches!(source, Source::Derived(q) if q.body == rows);
    for step in &recursion.steps {
        if let QueryBody::Block(block) = &step.body
            && block.tables.iter().any(|t| t.nullable && is_own(&t.source))
        {
            let code = ErrorCode::ER_CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER;
            return Err(SqlError::new(code, &[&recursion.name]));
        }
    }
    Ok(())
}

fn block(cx: &RewriteCx<'_>, block: &mut Block, limited: bool) -> Result<(), SqlError> {
    for table in &mut block.tables {
        if let Source::Derived(q) = &mut table.source {
            query(cx, q)?;
        }
    }
    member_texts::compare_texts(block);
    if block.tables.len() > 1 {
        small_sums::narrow(cx.plan, block);
    }
    unions::split(cx.plan, block);
    quantified::make_exists(cx.plan, block);
    subqueries(cx, &mut block.subqueries)?;
    distinct::group_whole_row(block, limited);
    merge::merge_derived_tables(cx.plan, block);
    pad::pad_char_columns(cx.plan, block);
    decided::by_literals(cx.plan, block);
    constant_keys::simplify(cx.plan, block);
    disjunctions::take_apart(cx.plan, block);
    row_lists::use_row_lists(block);
    generated::use_generated_columns(block, cx.plan.literals, cx.exprs)?;
    arrays::use_array_columns(block, cx.plan, cx.exprs)?;
    outer_joins::make_inner(block);
    push_down::push_into_derived(cx.plan, block);
    Ok(())
}

fn subqueries(cx: &RewriteCx<'_>, list: &mut [Subquery]) -> Result<(), SqlError> {
    for sub in list {
        redundant::remove_clauses(cx.plan, sub);
        if let QueryBody::Block(block) = &mut sub.query.body {
            small_sums::narrow(cx.plan, block);
        }
        query(cx, &mut sub.query)?;
        if sub.correlated {
            let decorrelated = decorrelate::decorrelated(cx.plan, sub);
            let decorrelated = decorrelated
                .or_else(|| grouped::grouped(cx.plan, sub))
                .or_else(|| grouped::groups_of_keys(cx.plan, sub));
            sub.decorrelated = decorrelated.map(Box::new);
        }
    }
    Ok(())
}
