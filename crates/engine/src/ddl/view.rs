//! CREATE, ALTER and DROP VIEW: definitions alone, no space and no rows.

use std::sync::Arc;

use nfold_catalog::codec::StoredView;
use nfold_catalog::{ColumnDef, TableDef, TableId, ViewDef};
use nfold_types::collation::CollationId;

use crate::dictionary::{self, ObjectKind};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::stats::{block, now};

/// A view to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewSpec {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub columns: Vec<ColumnDef>,
    /// The database's.
    pub collation: CollationId,
    pub view: ViewDef,
}

impl Engine {
    /// CREATE VIEW; in the place of `old`, if there is one. The name is free otherwise, and the
    /// database exists (L1).
    pub fn put_view(&self, spec: ViewSpec, old: Option<&Arc<TableDef>>) -> Result<(), EngineError> {
        let shared = self.shared();
        let _one = shared.ddl.lock();
        let dictionary = &shared.dictionary;
        let space = dictionary.def().space;
        let id = block(|| dictionary::take_ids(&shared.store, space, 1))?;
        let name = (TableId(id), spec.schema, spec.name);
        let def = TableDef::of_view(name, spec.collation, now(), spec.columns, spec.view);
        let stored = StoredView(def);
        self.change_dictionary(|s| {
            if let Some(old) = old {
                dictionary::remove(s, dictionary, ObjectKind::View, &old.id.0.to_be_bytes())?;
            }
            self.put_object(s, ObjectKind::View, &id.to_be_bytes(), &stored)
        })?;
        self.catalog().publish_schema(|schema| {
            if let Some(old) = old {
                schema.remove_table(old.id);
            }
            schema.put_table(Arc::new(stored.0));
        });
        Ok(())
    }

    /// DROP VIEW: all of them or none.
    pub fn drop_views(&self, views: &[Arc<TableDef>]) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        let dictionary = &self.shared().dictionary;
        self.change_dictionary(|s| {
            for view in views {
                dictionary::remove(s, dictionary, ObjectKind::View, &view.id.0.to_be_bytes())?;
            }
            Ok(())
        })?;
        self.catalog()
            .publish_schema(|schema| views.iter().for_each(|v| schema.remove_table(v.id)));
        Ok(())
    }
}
