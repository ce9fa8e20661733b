//! System views: which there are, and their columns.

use nfold_plan::query::VirtualDef;

/// Databases that exist without being stored.
pub fn is_system_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case("information_schema")
}

/// A system view as the binder knows it.
pub fn definition(_schema: &str, _name: &str) -> Option<VirtualDef> {
    None
}
