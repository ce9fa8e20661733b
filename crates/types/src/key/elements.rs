//! The elements of a multi-valued key part, as the row stores them in a hidden column.
//!
//! # Picture
//! ```text
//! column  = element, element, ...     distinct, in key order; nothing for an empty array
//! element = u16 length, key part      the part as `KeyLayout::encode_part` writes it
//! ```
//! The bytes are key parts, so that the index needs no conversion of a stored value.
//!
//! # Failure
//! Damaged bytes end the iteration early; they never panic.

use super::{KeyError, KeyLayout, KeyPart};
use crate::{ColumnType, Value};

/// The layout of one element of type `ty`. The part is nullable, as the column is.
pub fn element_layout(ty: &ColumnType) -> KeyLayout {
    KeyLayout::new([KeyPart::new(0, ty.clone(), true)])
}

/// Packs the key parts of values of type `ty`, each once.
///
/// # Errors
/// A value does not have the type.
pub fn pack_elements(ty: &ColumnType, values: &[Value]) -> Result<Vec<u8>, KeyError> {
    let layout = element_layout(ty);
    let mut keys = Vec::with_capacity(values.len());
    for value in values {
        let mut key = Vec::new();
        layout.encode_part(0, value.as_ref(), &mut key)?;
        keys.push(key);
    }
    keys.sort_unstable();
    keys.dedup();
    let mut packed = Vec::with_capacity(keys.iter().map(|key| key.len() + 2).sum());
    for key in &keys {
        packed.extend_from_slice(&(key.len() as u16).to_le_bytes());
        packed.extend_from_slice(key);
    }
    Ok(packed)
}

/// The key parts of a packed array, in key order.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a>(pub &'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk::<2>()?;
        let (element, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
        self.0 = rest;
        Some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_are_sorted_and_distinct() {
        let ty = ColumnType::bigint();
        let values = [3, -1, 3, 7, -1].map(Value::Int);
        let packed = pack_elements(&ty, &values).unwrap();
        let layout = element_layout(&ty);
        let decode = |mut key: &[u8]| layout.decode_part(0, &mut key).unwrap();
        let decoded: Vec<Value> = Elements(&packed).map(decode).collect();
        assert_eq!(decoded, [-1, 3, 7].map(Value::Int));
        assert_eq!(pack_elements(&ty, &[]).unwrap(), b"");
        assert_eq!(Elements(&packed[..packed.len() - 1]).count(), 2);
        assert!(pack_elements(&ty, &[Value::Bytes(b"x".to_vec())]).is_err());
    }
}
