//! The value of an expression with subqueries outside of a query (`SET @x = (SELECT ...)`): runs
//! `SELECT expression`.

use nfold_exec::{ExecCx, SessionEnv};
use nfold_sql::ast::{
    Expr, Ident, Query, QueryBody, Select, SelectItem, SelectOptions, Span, Statement,
};
use nfold_sql::digest::Digested;
use nfold_sql::parser::Parsed;
use nfold_types::{ColumnType, SqlError, TypeKind, Value};

use super::select_into::FirstRow;
use crate::session::Session;
use crate::session::plans::Work;

impl Session {
    /// See the module's header.
    pub(crate) fn select_value(
        &mut self,
        cx: &mut dyn ExecCx,
        e: &Expr,
        text: &[u8],
    ) -> Result<(Value, ColumnType), SqlError> {
        let free = self.free_work.take();
        let select = Select {
            distinct: false,
            options: SelectOptions::default(),
            plan_hints: Vec::new(),
            items: vec![SelectItem::Expr {
                expr: e.clone(),
                alias: Some(Ident::new("value")),
                text: Span::default(),
            }],
            from: Vec::new(),
            selection: None,
            group_by: Vec::new(),
            with_rollup: false,
            having: None,
            windows: Vec::new(),
        };
        let query = Query {
            with: None,
            body: QueryBody::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
        };
        let parsed = Parsed {
            statement: Statement::Query(Box::new(query)),
            roles: free.as_ref().map_or_else(Vec::new, |f| f.roles.clone()),
            named_by_text: 0,
            deprecated: Vec::new(),
        };
        let none = Digested::new();
        let work = Work {
            text,
            digested: free.as_ref().map_or(&none, |f| &f.digested),
            markers: free.as_ref().map_or(&[][..], |f| &f.markers),
            describe: false,
            parsed: Some(&parsed),
            hint: None,
        };
        let mut sink = FirstRow::default();
        let result = self.run_once(cx, &work, &mut sink);
        self.free_work = free;
        let ended = self.end_work(cx, result.as_ref().err());
        result?;
        ended?;
        let values = sink.values(self.env.result_charset(), self.env.collation());
        let none = || (Value::Null, ColumnType::new(TypeKind::Null));
        Ok(values.into_iter().next().unwrap_or_else(none))
    }
}
