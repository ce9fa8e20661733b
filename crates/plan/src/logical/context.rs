//! The context in which a statement is planned: the schema, the session's settings, and the types
//! of its parameters.

use std::sync::Arc;

use nfold_catalog::{SchemaSnapshot, TableDef, TableId, TableStats};
use nfold_sql::ast::{ExplainFormat, VarScope};
use nfold_sql::digest::{Digested, KindSet, SlotKind};
use nfold_types::collation::CollationId;
use nfold_types::{Checkpoint, ColumnType, SqlError};

use super::column_uses::ColumnUses;
use super::func::FuncSet;
use super::literals::Literals;
use super::mode::{SqlMode, Switches};
use super::trace::OptimizerTrace;
use super::types::{Coercibility, ExprType};

/// The inputs of the planner from the layers above, besides the schema.
pub trait PlanInfo {
    fn stats(&self, table: TableId) -> Option<Arc<TableStats>>;
    /// Notes that a condition uses a column that has no histogram.
    fn want_histogram(&self, _table: TableId, _column: usize) {}
    /// The type of a system variable. Error 1193 if it is unknown.
    fn sysvar_type(&self, scope: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError>;
    /// The type of a user variable's current value.
    fn user_var_type(&self, name: &str) -> ColumnType;
    /// Finds a system table. Used if the schema has no table of this name.
    fn virtual_table(&self, schema: &str, name: &str) -> Option<Arc<TableDef>>;
}

/// All inputs of planning other than the statement.
#[derive(Clone, Copy)]
pub struct PlanCx<'a> {
    pub snapshot: &'a SchemaSnapshot,
    /// The schema that views see: without temporary tables.
    pub stored: &'a SchemaSnapshot,
    /// The current database.
    pub db: Option<&'a str>,
    pub mode: SqlMode,
    /// `collation_connection`.
    pub connection: CollationId,
    pub funcs: &'static dyn FuncSet,
    pub info: &'a dyn PlanInfo,
    /// Checks for KILL and yields to other sessions while a large statement is planned.
    pub checkpoint: &'a dyn Checkpoint,
    /// The statement's text, from which columns take their names.
    pub text: &'a [u8],
    /// The types of the parameter slots.
    pub params: &'a [ParamType],
    /// Collects the columns that the statement names; `None`: their privileges are not checked.
    pub column_uses: Option<&'a ColumnUses>,
    /// The literals among them, where a plan may depend on their values.
    pub literals: Option<&'a Literals<'a>>,
    /// `sql_select_limit`: the maximum number of rows of a SELECT without LIMIT.
    pub select_limit: Option<u64>,
    /// `sql_safe_updates`: UPDATE and DELETE must use a key or a LIMIT.
    pub safe_updates: bool,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `group_concat_max_len`.
    pub group_concat_max_len: usize,
    /// `div_precision_increment`: how many decimals a division adds to those of the dividend.
    pub div_precision_increment: u8,
    /// `optimizer_switch`.
    pub switches: Switches,
    /// `explain_format`, and `explain_json_format_version`.
    pub explain_format: (ExplainFormat, u8),
    /// Collects the optimizer trace; `None`: it is off.
    pub trace: Option<&'a OptimizerTrace>,
}

/// The type of a parameter slot.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamType {
    One(ExprType),
    /// A list that the digest has folded into one slot: the types of its members, the number of
    /// columns of a row, and the number of rows. That number is an estimate for costs, and has no
    /// effect on the result.
    List {
        members: Vec<ExprType>,
        width: usize,
        count: usize,
    },
}

fn kind_types(kinds: KindSet, connection: CollationId) -> Vec<ExprType> {
    let mut out = Vec::new();
    let mut add = |kind: KindSet, ty: ExprType| {
        if kinds.contains(kind) {
            out.push(ty);
        }
    };
    add(KindSet::INT, ExprType::bigint(false));
    add(KindSet::BOOL, ExprType::boolean(false));
    add(KindSet::BIG_INT, ExprType::ubigint(false));
    add(KindSet::DECIMAL, ExprType::decimal(65, 30, false));
    add(KindSet::FLOAT, ExprType::double(false));
    add(
        KindSet::STRING,
        ExprType::string(255, connection, Coercibility::Coercible, false),
    );
    add(
        KindSet::NATIONAL,
        ExprType::string(
            255,
            CollationId::UTF8MB3_GENERAL_CI,
            Coercibility::Coercible,
            false,
        ),
    );
    add(KindSet::HEX, hex_type(8));
    add(KindSet::BIT, hex_type(8));
    add(KindSet::NULL, ExprType::null());
    out
}

impl<'a> PlanCx<'a> {
    /// Whether plans may use invisible indexes.
    pub(crate) fn uses_invisible_indexes(&self) -> bool {
        self.switches.has(Switches::USE_INVISIBLE_INDEXES)
    }

    /// The stored tables, and whether foreign keys between them are checked.
    pub(crate) fn foreign(&self) -> (&'a SchemaSnapshot, bool) {
        (self.stored, self.foreign_key_checks)
    }
}

/// The type of a hexadecimal or bit literal: a binary string with `zerofill`, which marks that it
/// acts as a number.
pub fn hex_type(bytes: u64) -> ExprType {
    let mut ty = ExprType::string(bytes, CollationId::BINARY, Coercibility::Coercible, false);
    ty.col.zerofill = true;
    ty
}

/// The types of a statement's parameter slots: literals by their kind, `?` by the bound value.
pub fn param_types(
    digest: &Digested,
    markers: &[ExprType],
    connection: CollationId,
) -> Vec<ParamType> {
    let one = |kinds: KindSet| {
        kind_types(kinds, connection)
            .into_iter()
            .next()
            .unwrap_or_else(ExprType::null)
    };
    digest
        .slots()
        .iter()
        .map(|slot| match slot.kind {
            SlotKind::Literal(_) => ParamType::One(one(slot.kinds)),
            SlotKind::Marker(n) => {
                ParamType::One(markers.get(n as usize).cloned().unwrap_or_else(|| {
                    ExprType::string(255, connection, Coercibility::Coercible, true)
                }))
            }
            SlotKind::List | SlotKind::Rows => ParamType::List {
                members: kind_types(slot.kinds, connection),
                width: slot.width.max(1) as usize,
                count: slot.count as usize,
            },
        })
        .collect()
}
