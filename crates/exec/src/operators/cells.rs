//! Encodes several row images as one record.
//!
//! # Picture
//! ```text
//! record: | length u32, image | length u32, image | ... |      ABSENT: no image, the NULLs of an outer join
//! ```

/// The length that marks a missing image.
const ABSENT: u32 = u32::MAX;

/// Appends an image.
pub(crate) fn put(image: Option<&[u8]>, out: &mut Vec<u8>) {
    let len = image.map_or(ABSENT, |i| i.len() as u32);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(image.unwrap_or_default());
}

/// Splits a record into its first image and the rest.
pub(crate) fn take(record: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, rest) = record.split_first_chunk::<4>()?;
    match u32::from_le_bytes(*len) {
        ABSENT => Some((None, rest)),
        len => {
            let (image, rest) = rest.split_at_checked(len as usize)?;
            Some((Some(image), rest))
        }
    }
}
