//! Golden tests of the planner's stages. A golden file has statements on lines that begin with `>
//! `, each followed by the printed tree of a stage. `NFOLD_RECORD_GOLDEN=1 cargo test -p
//! nfold-plan` rewrites the files.

use std::path::Path;
use std::sync::Arc;

use nfold_catalog::{
    ColumnDef, ColumnDefault, DatabaseDef, Histogram, HistogramBucket, HistogramType, IndexDef,
    IndexId, IndexKind, IndexPart, IndexStats, SchemaSnapshot, TableDef, TableId, TableOptions,
    TableStats,
};
use nfold_sql::ast::VarScope;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse;
use nfold_types::NoCheckpoint;
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind};

use crate::logical::context::{PlanCx, PlanInfo};
use crate::logical::expr::{Expr, ExprType, FuncId};
use crate::logical::func::{FuncDef, FuncSet, Infer, PADDED, VOLATILE};
use crate::logical::mode::{SqlMode, Switches};
use crate::logical::statement::Statement;

const COLLATION: CollationId = CollationId::UTF8MB4_0900_AI_CI;

/// The functions of the tests: one that pads a CHAR, and a volatile one.
struct Functions;

fn same_type(_: &Infer<'_>, args: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(args[0].ty.clone())
}

fn double(_: &Infer<'_>, _: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(ExprType::double(false))
}

static FUNCTIONS: [FuncDef; 2] = [
    FuncDef {
        name: PADDED,
        min_args: 1,
        max_args: 1,
        infer: same_type,
        flags: 0,
    },
    FuncDef {
        name: "rand",
        min_args: 0,
        max_args: 1,
        infer: double,
        flags: VOLATILE,
    },
];

impl FuncSet for Functions {
    fn find(&self, name: &str) -> Option<(FuncId, &'static FuncDef)> {
        let n = FUNCTIONS.iter().position(|f| f.name == name)?;
        Some((FuncId(n as u16), &FUNCTIONS[n]))
    }

    fn get(&self, id: FuncId) -> &'static FuncDef {
        &FUNCTIONS[usize::from(id.0)]
    }
}

/// Statistics: tables 1, 4, 5 and 6 have 10,000 rows, table 2 has 1,000 rows, other tables have
/// 100. The columns `k`, `x` and `y` of table 6 have [`skewed`] values.
struct Info;

/// A sampled histogram: nine of ten rows have the value 1, the others one of 2 to 100, or NULL.
fn skewed() -> Option<Arc<Histogram>> {
    let bucket = |lower: &str, upper: &str, cumulative, distinct| HistogramBucket {
        lower: lower.as_bytes().into(),
        upper: upper.as_bytes().into(),
        cumulative,
        distinct,
    };
    Some(Arc::new(Histogram {
        kind: HistogramType::Int,
        singleton: false,
        buckets: vec![bucket("1", "1", 0.9, 1), bucket("2", "100", 0.99, 99)],
        null_share: 0.01,
        collation: COLLATION,
        buckets_specified: 100,
        auto_update: true,
        sampling_rate: 1.0,
        updated_us: 0,
    }))
}

impl PlanInfo for Info {
    fn stats(&self, table: TableId) -> Option<Arc<TableStats>> {
        let rows = match table.0 {
            1 | 4..=6 => 10_000,
            2 => 1_000,
            _ => 100,
        };
        let index = |distinct: u64| IndexStats {
            distinct: vec![distinct],
            pages: 1,
        };
        Some(Arc::new(TableStats {
            rows,
            avg_row_bytes: 100,
            indexes: match table.0 {
                5 => vec![index(rows), index(10)],
                _ => vec![index(rows), index(rows / 10), index(rows / 100)],
            },
            histograms: match table.0 {
                6 => vec![None, skewed(), skewed(), skewed()],
                _ => Vec::new(),
            },
            ..TableStats::default()
        }))
    }

    fn sysvar_type(&self, _: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError> {
        let code = ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE;
        Err(SqlError::new(code, &[&name]))
    }

    fn user_var_type(&self, _: &str) -> ColumnType {
        ColumnType::bigint()
    }

    fn virtual_table(&self, _: &str, _: &str) -> Option<Arc<TableDef>> {
        None
    }
}

/// A table of INT columns and one CHAR(8), with a primary key on the first column and an index `k`
/// on the second. Table `m` has an index `y` on its last column too, and the only index of table
/// `n` has its second and third column.
fn table(id: u64, name: &str, columns: &[&str]) -> Arc<TableDef> {
    let column = |(n, name): (usize, &&str)| ColumnDef {
        name: (*name).into(),
        ty: match *name {
            "text" => ColumnType::string(TypeKind::Char(8), COLLATION),
            _ => ColumnType::new(TypeKind::Int),
        },
        nullable: n > 0,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: false,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    };
    let part = |column: usize| IndexPart {
        column,
        prefix_len: None,
        desc: false,
    };
    let index = |n: usize, name: &str, kind: IndexKind| IndexDef {
        id: IndexId(10 * id + n as u64),
        name: name.into(),
        kind,
        parts: vec![part(n)],
        root: 0,
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    };
    Arc::new(TableDef {
        id: TableId(id),
        schema: "d".into(),
        name: name.into(),
        columns: columns.iter().enumerate().map(column).collect(),
        indexes: match name {
            "n" => vec![
                index(0, "PRIMARY", IndexKind::Primary),
                IndexDef {
                    parts: [1, 2].map(part).to_vec(),
                    ..index(1, "kx", IndexKind::Secondary)
                },
            ],
            "m" => vec![
                index(0, "PRIMARY", IndexKind::Primary),
                index(1, "k", IndexKind::Secondary),
                index(columns.len() - 1, "y", IndexKind::Secondary),
            ],
            _ => vec![
                index(0, "PRIMARY", IndexKind::Primary),
                index(1, "k", IndexKind::Secondary),
            ],
        },
        collation: COLLATION,
        options: TableOptions::default(),
        space: 0,
        row_version: 0,
        create_time: 0,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        bound: nfold_catalog::BoundExprs::default(),
        relation: nfold_catalog::Relation::Table,
    })
}

/// Calls `f` with the context of a statement over the tables `a`, `b`, `c`, `h`, `m` and `n`.
fn with_cx<T>(
    text: &[u8],
    mode: SqlMode,
    switches: Switches,
    f: impl FnOnce(&PlanCx<'_>) -> T,
) -> T {
    let mut snapshot = SchemaSnapshot::default();
    snapshot.put_database(DatabaseDef {
        name: "d".into(),
        collation: COLLATION,
    });
    snapshot.put_table(table(1, "a", &["id", "k", "x", "text"]));
    snapshot.put_table(table(2, "b", &["id", "k", "x"]));
    snapshot.put_table(table(3, "c", &["id", "k", "x"]));
    snapshot.put_table(table(4, "m", &["id", "k", "x", "y"]));
    snapshot.put_table(table(5, "n", &["id", "k", "x", "y"]));
    snapshot.put_table(table(6, "h", &["id", "k", "x", "y"]));
    f(&PlanCx {
        snapshot: &snapshot,
        stored: &snapshot,
        db: Some("d"),
        mode,
        connection: COLLATION,
        funcs: &Functions,
        info: &Info,
        checkpoint: &NoCheckpoint,
        text,
        params: &[],
        column_uses: None,
        literals: None,
        select_limit: None,
        safe_updates: false,
        group_concat_max_len: 1024,
        div_precision_increment: nfold_types::decimal::DIV_PRECISION_INCREMENT,
        foreign_key_checks: true,
        switches,
        explain_format: (nfold_sql::ast::ExplainFormat::Tree, 2),
        trace: None,
    })
}

/// Compares the text that `stage` prints for each bound statement with the golden file. A statement
/// behind `> pad:` runs in the SQL mode PAD_CHAR_TO_FULL_LENGTH, one behind `> no NAME:` without a
/// switch of `optimizer_switch`.
pub(crate) fn check(
    file: &str,
    stage: &dyn Fn(&PlanCx<'_>, Statement) -> Result<String, SqlError>,
) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let golden = std::fs::read_to_string(&path).expect("the golden file");
    let mut found = String::new();
    for line in golden
        .lines()
        .filter(|l| l.starts_with("> ") || l.starts_with('#'))
    {
        if line.starts_with('#') {
            found.push_str(line);
            found.push('\n');
            continue;
        }
        let sql = line.trim_start_matches("> ");
        let (sql, mode) = match sql.strip_prefix("pad: ") {
            Some(sql) => (sql, SqlMode::DEFAULT.with(SqlMode::PAD_CHAR_TO_FULL_LENGTH)),
            None => (sql, SqlMode::DEFAULT),
        };
        let off = [
            ("no semijoin: ", Switches::SEMIJOIN),
            ("no merge: ", Switches::DERIVED_MERGE),
            ("no pushdown: ", Switches::DERIVED_CONDITION_PUSHDOWN),
        ];
        let off = off
            .iter()
            .find_map(|(name, switch)| Some((sql.strip_prefix(name)?, *switch)));
        let (sql, switches) = match off {
            Some((sql, switch)) => (sql, Switches::DEFAULT.without(switch)),
            None => (sql, Switches::DEFAULT),
        };
        let text = with_cx(sql.as_bytes(), mode, switches, |cx| {
            let statement = parse(sql.as_bytes(), LexMode::default())?;
            let (bound, _) = crate::bind::bind(cx, &statement)?;
            stage(cx, bound)
        });
        let text = text.unwrap_or_else(|e: SqlError| format!("error {}\n", e.errno()));
        found.push_str(&format!("{line}\n{text}\n"));
    }
    if std::env::var_os("NFOLD_RECORD_GOLDEN").is_some() {
        return std::fs::write(&path, &found).expect("the golden file");
    }
    let expected = golden.trim_end();
    assert!(found.trim_end() == expected, "{file} differs:\n{found}");
}
