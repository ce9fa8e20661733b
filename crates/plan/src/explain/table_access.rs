//! How one table is read, in the words of FORMAT=TRADITIONAL and of version 1 of FORMAT=JSON.

use nfold_catalog::TableDef;
use nfold_types::TypeKind;

use crate::logical::expr::{ExprKind, is_constant};
use crate::physical::{
    Access, AccessKind, Block, IndexMerge, MergeKind, PointPart, SkipRows, TableSource,
};

/// The access path of a base table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableAccess {
    /// `const`, `eq_ref`, `ref`, `fulltext`, `index_merge`, `range`, `index` or `ALL`.
    pub kind: &'static str,
    pub possible_keys: Vec<String>,
    pub key: Option<String>,
    /// The columns of the parts of the key that are used.
    pub key_parts: Vec<String>,
    /// In bytes.
    pub key_length: u64,
    /// Of an index merge: its indexes and their key lengths, and how they are combined.
    pub merge: Option<MergedKeys>,
    /// Of a skip scan: what MySQL calls it.
    pub skip: Option<&'static str>,
    /// The operands that the key parts are compared with.
    pub refs: Vec<String>,
    pub covering: bool,
    /// Whether the conditions of a range are tested on the entries of a secondary index.
    pub index_condition: bool,
}

/// The indexes of an index merge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergedKeys {
    /// Names, separated by commas, as the lengths are.
    pub keys: String,
    pub key_lengths: String,
    /// `union(a,b)`, for example.
    pub combined: String,
}

/// The access path of the table in slot `slot` of a block.
pub fn table_access(b: &Block, slot: usize, access: &Access) -> TableAccess {
    let TableSource::Table(def) = &b.tables[slot].source else {
        return TableAccess::default();
    };
    let index = &def.indexes[access.index];
    let key_name = |i: usize| match def.indexes[i].is_clustered() {
        true => "PRIMARY".to_string(),
        false => def.indexes[i].name.to_string(),
    };
    let used_parts = used_parts(&access.kind).unwrap_or(index.parts.len());
    let (kind, has_key) = match &access.kind {
        AccessKind::Points(parts) => (points_type(def, access, parts), true),
        AccessKind::Range { .. } | AccessKind::Ranges(_) => ("range", true),
        AccessKind::Fulltext(_) => ("fulltext", true),
        AccessKind::Merge(_) => ("index_merge", false),
        AccessKind::Skip(_) => ("range", true),
        AccessKind::Full if access.index == 0 && access.reverse => ("index", true),
        AccessKind::Full if access.index == 0 && !access.covering => ("ALL", false),
        AccessKind::Full => ("index", true),
        _ => ("ALL", false),
    };
    let key_parts = index.parts.iter().take(used_parts);
    let mut read = TableAccess {
        kind,
        possible_keys: access.possible.iter().map(|&i| key_name(i)).collect(),
        covering: access.covering,
        skip: match &access.kind {
            AccessKind::Skip(scan) => Some(match scan.rows {
                SkipRows::Values(_) => "Using index for skip scan",
                SkipRows::Ends { .. } => "Using index for group-by",
            }),
            _ => None,
        },
        index_condition: kind == "range"
            && !matches!(access.kind, AccessKind::Skip(_))
            && access.index != 0
            && !access.covering
            && def.array_part(&def.indexes[access.index]).is_none(),
        ..TableAccess::default()
    };
    if has_key {
        read.key = Some(key_name(access.index));
        read.key_parts = key_parts
            .map(|p| def.columns[p.column].name.to_string())
            .collect();
        read.key_length = key_len(def, access.index, used_parts);
    }
    if let AccessKind::Merge(merge) = &access.kind {
        read.merge = Some(merged_keys(def, merge, &key_name));
    }
    if let AccessKind::Fulltext(_) = &access.kind {
        read.refs = vec!["const".into()];
        let first = index.shown_parts().first();
        read.key_parts = first
            .map(|p| def.columns[p.column].name.to_string())
            .into_iter()
            .collect();
    }
    if let AccessKind::Points(parts) = &access.kind
        && kind != "range"
    {
        read.refs = parts.iter().map(|p| reference(b, p)).collect();
    }
    read
}

/// The number of key parts that a path uses, if that is not all of them.
fn used_parts(kind: &AccessKind) -> Option<usize> {
    match kind {
        AccessKind::Points(p) => Some(p.len()),
        AccessKind::Range { prefix, .. } => Some(prefix.len() + 1),
        AccessKind::Ranges(_) => Some(1),
        AccessKind::Fulltext(_) => Some(0),
        AccessKind::Skip(scan) => Some(match &scan.rows {
            SkipRows::Values(_) => scan.parts + 1,
            SkipRows::Ends { any, last, first } => {
                let ends = *any || *last || !matches!(first, AccessKind::Full);
                scan.parts + usize::from(ends)
            }
        }),
        _ => None,
    }
}

fn merged_keys(
    def: &TableDef,
    merge: &IndexMerge,
    key_name: &dyn Fn(usize) -> String,
) -> MergedKeys {
    let names: Vec<String> = merge.branches.iter().map(|b| key_name(b.index)).collect();
    let lengths = merge.branches.iter().map(|branch| {
        let parts = used_parts(&branch.kind).unwrap_or(0);
        key_len(def, branch.index, parts).to_string()
    });
    let lengths: Vec<String> = lengths.collect();
    let word = match merge.kind {
        MergeKind::Union => "union",
        MergeKind::SortUnion => "sort_union",
        MergeKind::Intersection => "intersect",
    };
    let keys = names.join(",");
    MergedKeys {
        combined: format!("{word}({keys})"),
        keys,
        key_lengths: lengths.join(","),
    }
}

/// The operand that a key part is compared with: `const`, a column, or `func`.
fn reference(b: &Block, p: &PointPart) -> String {
    let PointPart::Eq { expr, .. } = p else {
        return "const".into();
    };
    match &expr.kind {
        _ if is_constant(expr) => "const".into(),
        ExprKind::Column(at) => {
            let slot = &b.tables[usize::from(at.table)];
            let column = usize::from(at.column);
            match &slot.source {
                TableSource::Table(t) | TableSource::Virtual(t) => {
                    format!("{}.{}.{}", t.schema, slot.alias, t.columns[column].name)
                }
                TableSource::Derived(q) => format!("{}.{}", slot.alias, q.columns[column].name),
                TableSource::Json(t) => {
                    format!("{}.{}", slot.alias, t.shape.columns[column].name)
                }
            }
        }
        _ => "func".into(),
    }
}

fn points_type(def: &TableDef, access: &Access, parts: &[PointPart]) -> &'static str {
    let index = &def.indexes[access.index];
    let is_single = |p: &PointPart| match p {
        PointPart::Eq { .. } => true,
        PointPart::Elements { to, .. } => to.member,
        _ => false,
    };
    if !parts.iter().all(is_single) {
        return "range";
    }
    let constant = parts.iter().all(|p| match p {
        PointPart::Eq { expr, .. } => is_constant(expr),
        _ => true,
    });
    let whole = index.is_unique() && parts.len() == index.parts.len();
    match (whole, constant) {
        (true, true) => "const",
        (true, false) => "eq_ref",
        (false, _) => "ref",
    }
}

/// The length of the first `parts` key parts in bytes, as MySQL counts it: one more for a nullable
/// column, two more for a column of variable length.
fn key_len(def: &TableDef, index: usize, parts: usize) -> u64 {
    def.indexes[index]
        .parts
        .iter()
        .take(parts)
        .map(|p| {
            let column = &def.columns[p.column];
            let ty = def.array_of(p.column).unwrap_or(&column.ty);
            let variable = matches!(
                ty.kind,
                TypeKind::VarChar(_)
                    | TypeKind::VarBinary(_)
                    | TypeKind::Text(_)
                    | TypeKind::Blob(_)
            );
            let bytes = match p.prefix_len {
                Some(n) => u64::from(n) * u64::from(ty.charset().max_len),
                None => ty.max_bytes(),
            };
            let time = match ty.kind {
                TypeKind::Time(f) => Some(3 + u64::from(f.div_ceil(2))),
                TypeKind::DateTime(f) => Some(5 + u64::from(f.div_ceil(2))),
                TypeKind::Timestamp(f) => Some(4 + u64::from(f.div_ceil(2))),
                _ => None,
            };
            time.unwrap_or(bytes) + u64::from(column.nullable) + if variable { 2 } else { 0 }
        })
        .sum()
}
