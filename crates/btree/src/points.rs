use crate::batch::PointScan;
use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

impl TreeHandle {
    /// Reads all points of the batch into its entries. `Ok(true)`: entries reached `max_bytes` and there is more; use them,
    /// clear them, call again. `Wait`: call again; what was found stays found.
    pub fn scan_points(
        &self,
        store: &Store,
        scan: &mut PointScan,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        let _ = (store, scan, max_bytes);
        todo!()
    }
}
