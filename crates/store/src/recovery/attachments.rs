//! Reads the attachments in the log, before recovery gives the log up.

use crate::attachments::{Attachment, AttachmentReader};
use crate::error::StoreError;
use crate::log::control::Control;
use crate::log::files::LogFiles;
use crate::log::format::Records;
use crate::log::scan::Scan;
use crate::page::Lsn;
use crate::redo;

/// Passes the attachments in the log between `control`'s checkpoint and `end` to the reader.
pub(super) fn pass_on(
    files: &LogFiles,
    control: &Control,
    end: Lsn,
    reader: &dyn AttachmentReader,
) -> Result<(), StoreError> {
    let io = |e: std::io::Error| StoreError::io(&e, "completing the binary log");
    let mut scan = Scan::new(files, control.generation, control.checkpoint);
    let mut records = Vec::new();
    while let Some((_, commit)) = scan.next(&mut records)? {
        if commit <= reader.synced() {
            continue;
        }
        let mut bytes = None;
        for record in Records::new(&records).filter(|r| r.op == redo::ATTACHMENT) {
            let bytes: &mut Vec<u8> = bytes.get_or_insert_default();
            bytes.extend_from_slice(record.payload);
        }
        if let Some(bytes) = bytes {
            let attachment = Attachment { commit, bytes };
            reader.recovered(attachment).map_err(io)?;
        }
    }
    reader.finish(end).map_err(io)
}
